//! Any text as a description file: it is refused with places, or it is a plan that can be checked, printed, generated.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match musubi_config::parse("system.toml", text) {
        Err(report) => {
            let rendered = report.render(false);
            assert!(!report.errors().is_empty() && !rendered.is_empty());
        }
        Ok(description) => {
            assert!(
                description.with_plan(|plan| plan.check().is_ok()),
                "the plan breaks a limit that attaching checks"
            );
            let _ = musubi_config::check(&description, None);
            // What is printed reads back as the same system.
            let printed = musubi_config::print(&description);
            let again = musubi_config::parse("printed.toml", &printed).expect("what was printed is a description");
            assert_eq!(again.hash(), description.hash());
        }
    }
});
