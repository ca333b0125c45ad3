//! The driver against the model.

use super::model::{CORES, Model, View};
use super::*;

const DOORBELL: u32 = FIRST_SHARED + 9;

fn core(model: &Model, number: usize) -> Gic<View<'_>> {
    Gic::new(model.distributor(number), model.interface(number))
}

/// A controller as after boot: opened by core 0, each core's interface open.
fn booted(model: &Model) -> [Gic<View<'_>>; CORES] {
    let cores: [_; CORES] = core::array::from_fn(|number| core(model, number));
    cores[0].open();
    for each in &cores {
        each.open_interface();
    }
    cores
}

fn number_taken(gic: &Gic<View<'_>>) -> Option<u32> {
    let taken = gic.take()?;
    gic.complete(taken);
    Some(taken.number())
}

#[test]
fn what_the_controller_says_of_itself() {
    let model = Model::new();
    let gic = core(&model, 2);
    assert!(gic.is_present());
    assert_eq!((gic.interrupts(), gic.cores(), gic.own_bit()), (96, 4, 0b100));
}

#[test]
fn nothing_pending_is_the_spurious_number() {
    let model = Model::new();
    assert_eq!(booted(&model)[0].take(), None);
}

#[test]
fn a_software_interrupt_reaches_its_targets_and_names_its_sender() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[1].send(5, 0b1101));
    for target in [0, 2, 3] {
        let taken = cores[target].take().expect("target is interrupted");
        assert_eq!((taken.number(), taken.source()), (5, Some(1)));
        cores[target].complete(taken);
        assert_eq!(cores[target].take(), None);
    }
    assert_eq!(cores[1].take(), None);
    assert_eq!(model.bad_ends(), 0);
}

#[test]
fn the_same_number_from_two_senders_comes_twice_and_from_one_once() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[1].send(3, 1) && cores[1].send(3, 1) && cores[2].send(3, 1));
    let sources: [Option<usize>; 3] = core::array::from_fn(|_| {
        let taken = cores[0].take()?;
        cores[0].complete(taken);
        taken.source()
    });
    assert_eq!(sources, [Some(1), Some(2), None]);
}

#[test]
fn all_others_leaves_the_sender_out() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[2].send_to_others(0));
    assert_eq!(cores.each_ref().map(number_taken), [Some(0), Some(0), None, Some(0)]);
}

#[test]
fn a_shared_interrupt_made_pending_comes_once_to_its_target() {
    let model = Model::new();
    let cores = booted(&model);
    let gic = &cores[0];
    assert!(gic.edge(DOORBELL, true) && gic.target(DOORBELL, cores[3].own_bit()) && gic.enable(DOORBELL));
    assert!(cores[1].set_pending(DOORBELL) && cores[1].set_pending(DOORBELL) && gic.is_pending(DOORBELL));
    assert_eq!(number_taken(&cores[0]), None);
    assert_eq!((number_taken(&cores[3]), number_taken(&cores[3])), (Some(DOORBELL), None));
    assert!(!gic.is_pending(DOORBELL));
}

#[test]
fn a_disabled_interrupt_stays_pending_and_can_be_taken_back() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[0].target(DOORBELL, 1) && cores[0].set_pending(DOORBELL));
    assert_eq!(cores[0].take(), None);
    assert!(cores[0].clear_pending(DOORBELL) && cores[0].enable(DOORBELL));
    assert_eq!(cores[0].take(), None);
    assert!(cores[0].set_pending(DOORBELL) && cores[0].disable(DOORBELL));
    assert_eq!(cores[0].take(), None);
    assert!(cores[0].enable(DOORBELL));
    assert_eq!(number_taken(&cores[0]), Some(DOORBELL));
}

#[test]
fn private_interrupts_are_banked() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[1].enable(29) && cores[0].set_pending(29) && cores[1].set_pending(29));
    assert_eq!(cores.each_ref().map(number_taken), [None, Some(29), None, None]);
}

#[test]
fn the_more_urgent_goes_first_and_interrupts_the_other() {
    let model = Model::new();
    let cores = booted(&model);
    let gic = &cores[0];
    assert!(gic.prioritise(DOORBELL, 0x20) && gic.target(DOORBELL, 1) && gic.enable(DOORBELL));
    assert!(gic.send(1, 1));
    let outer = gic.take().expect("the usual priority");
    assert!(gic.send(2, 1));
    assert_eq!(gic.take(), None, "equal priority must not interrupt");
    assert!(gic.set_pending(DOORBELL));
    let inner = gic.take().expect("the urgent one interrupts");
    assert_eq!((outer.number(), inner.number(), inner.source()), (1, DOORBELL, None));
    gic.complete(inner);
    assert_eq!(gic.take(), None);
    gic.complete(outer);
    assert_eq!((number_taken(gic), model.bad_ends()), (Some(2), 0));
}

#[test]
fn numbers_that_do_not_exist_are_refused() {
    let model = Model::new();
    let gic = &booted(&model)[0];
    assert!(!gic.enable(96) && !gic.disable(1023) && !gic.set_pending(96) && !gic.prioritise(96, 0));
    assert!(!gic.set_pending(3) && !gic.clear_pending(3) && !gic.send(16, 1) && !gic.send_to_others(16));
    assert!(!gic.target(31, 1) && !gic.edge(31, true) && !gic.target(96, 1) && !gic.is_pending(96));
}

#[test]
fn opening_resets_and_joining_does_not() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[0].target(DOORBELL, 1) && cores[0].enable(DOORBELL) && cores[0].set_pending(DOORBELL));
    cores[1].join();
    assert!(cores[0].is_pending(DOORBELL));
    cores[0].open();
    assert!(!cores[0].is_pending(DOORBELL));
    assert!(cores[0].set_pending(DOORBELL));
    assert_eq!(cores[0].take(), None, "neither enabled nor targeted");
}

#[test]
fn a_closed_interface_takes_nothing_until_it_is_opened() {
    let model = Model::new();
    let cores = booted(&model);
    assert!(cores[0].is_interface_open());
    cores[0].close_interface();
    assert!(!cores[0].is_interface_open() && cores[1].is_interface_open());
    assert!(cores[1].send(7, 1));
    assert_eq!(cores[0].take(), None);
}

#[test]
fn a_controller_without_the_first_interrupts_still_tells_its_reader_apart() {
    let model = Model::without_first(16);
    assert_eq!(core(&model, 2).own_bit(), 0b100);
}

#[test]
fn a_level_comes_again_until_its_device_is_silent_and_an_edge_does_not() {
    let model = Model::new();
    let gic = &booted(&model)[0];
    assert!(gic.edge(DOORBELL, false) && gic.target(DOORBELL, 1) && gic.enable(DOORBELL));
    model.drive(DOORBELL as usize, true);
    assert_eq!([number_taken(gic), number_taken(gic)], [Some(DOORBELL); 2], "nobody told the device");
    model.drive(DOORBELL as usize, false);
    assert_eq!(number_taken(gic), None);
    assert!(gic.disable(DOORBELL) && gic.edge(DOORBELL, true) && gic.enable(DOORBELL));
    model.drive(DOORBELL as usize, true);
    assert_eq!([number_taken(gic), number_taken(gic)], [Some(DOORBELL), None]);
}
