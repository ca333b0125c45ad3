//! C programs that know include/vipl.h only: between VIs of one NIC, over shared memory, over TCP, and over TLS.

mod programs;

use std::io::{BufRead as _, BufReader};

use programs::{Way, command, compile, description, program, run, succeed};

macro_rules! programs {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn of_one_nic() {
                super::run(stringify!($name), super::Way::Local);
            }

            #[test]
            fn over_shared_memory() {
                super::run(stringify!($name), super::Way::SharedMemory);
            }

            #[test]
            fn over_tcp() {
                super::run(stringify!($name), super::Way::Tcp);
            }

            #[test]
            fn over_tls() {
                super::run(stringify!($name), super::Way::Tls);
            }
        }
    )*};
}

programs! { operations states completions forks }

/// A server that echoes, and its clients one after the other: some end in order, some in the middle, some are killed.
fn clients(way: Way) {
    let (exchange, system) = (program("exchange"), description(way));
    let mut server = command(&exchange, "serve left 6", Some(&system)).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("up"));
    for turn in 0..6 {
        let what = if turn % 3 == 1 { "die" } else { "ask" };
        let count = if turn % 3 == 2 { 10_000_000 } else { 300 };
        let mut client = command(&exchange, &format!("{what} right left {count}"), Some(&system)).spawn().unwrap();
        match turn % 3 {
            0 => succeed(client),
            1 => assert!(client.wait().unwrap().success()),
            _ => {
                std::thread::sleep(std::time::Duration::from_millis(300));
                client.kill().unwrap();
                client.wait().unwrap();
            }
        }
        assert_eq!(lines.next().as_deref(), Some("gone"), "{turn}");
    }
    assert_eq!(lines.next().as_deref(), Some("ok"));
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_server_outlives_its_clients_over_shared_memory() {
    clients(Way::SharedMemory);
}

#[test]
fn a_server_outlives_its_clients_over_tcp() {
    clients(Way::Tcp);
}

#[test]
fn habits_of_the_period_are_served_in_c_and_cpp() {
    for (compiler, standard) in
        [("cc", "gnu89"), ("cc", "c99"), ("cc", "c11"), ("c++", "c++98"), ("c++", "c++11"), ("c++", "c++20")]
    {
        let name = format!("habits-{standard}");
        let program = compile("habits", &name, (compiler, standard), &["-D_GNU_SOURCE"]);
        succeed(command(&program, "", None).spawn().unwrap());
        succeed(command(&program, "lax", None).env("MUSUBI_VIPL_NULL_PTAG", "1").spawn().unwrap());
    }
}
