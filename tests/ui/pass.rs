//! Every pass case as a module of a test, so that clippy sees them and both editions run them.

#[path = "pass/signature/aliased_result.rs"]
mod aliased_result;
#[path = "pass/traits/async_trait.rs"]
mod async_trait;
#[path = "pass/key/constants.rs"]
mod constants;
#[path = "pass/body/constants_of_the_user.rs"]
mod constants_of_the_user;
#[path = "pass/arguments/crate_path.rs"]
mod crate_path;
#[path = "pass/body/diverging.rs"]
mod diverging;
#[path = "pass/arguments/every_argument.rs"]
mod every_argument;
#[path = "pass/signature/generics.rs"]
mod generics;
#[path = "pass/body/guard_stays.rs"]
mod guard_stays;
#[path = "pass/traits/hand_boxed.rs"]
mod hand_boxed;
#[path = "pass/signature/impl_trait.rs"]
mod impl_trait;
#[path = "pass/signature/in_macros.rs"]
mod in_macros;
#[path = "pass/traits/instrument.rs"]
mod instrument;
#[path = "pass/signature/kept_attributes.rs"]
mod kept_attributes;
#[path = "pass/signature/lifetimes.rs"]
mod lifetimes;
#[path = "pass/key/lock_key.rs"]
mod lock_key;
#[path = "pass/arguments/managers.rs"]
mod managers;
#[path = "pass/body/methods_of_the_user.rs"]
mod methods_of_the_user;
#[path = "pass/signature/mut_and_unused.rs"]
mod mut_and_unused;
#[path = "pass/body/names.rs"]
mod names;
#[path = "pass/traits/native_async_trait.rs"]
mod native_async_trait;
#[path = "pass/body/no_implicit_prelude.rs"]
mod no_implicit_prelude;
#[path = "pass/arguments/or_else_closures.rs"]
mod or_else_closures;
#[path = "pass/key/own_part.rs"]
mod own_part;
#[path = "pass/signature/patterns.rs"]
mod patterns;
#[path = "pass/body/question_mark_and_return.rs"]
mod question_mark_and_return;
#[path = "pass/signature/receivers.rs"]
mod receivers;
#[path = "pass/traits/renamed_import.rs"]
mod renamed_import;
#[path = "pass/body/send.rs"]
mod send;
#[path = "pass/body/shadowed_prelude.rs"]
mod shadowed_prelude;
#[path = "pass/arguments/skip_if_locked.rs"]
mod skip_if_locked;
#[path = "pass/body/tail_temporaries.rs"]
mod tail_temporaries;
#[path = "pass/key/templates.rs"]
mod templates;
#[path = "pass/traits/tokio_main.rs"]
mod tokio_main;

mod runs {
    macro_rules! runs {
        ($($case:ident)*) => {$(
            #[test]
            fn $case() {
                super::$case::main();
            }
        )*};
    }

    runs! {
        crate_path
        every_argument
        managers
        or_else_closures
        skip_if_locked
        constants_of_the_user
        diverging
        guard_stays
        methods_of_the_user
        names
        no_implicit_prelude
        question_mark_and_return
        send
        shadowed_prelude
        tail_temporaries
        constants
        lock_key
        own_part
        templates
        aliased_result
        generics
        impl_trait
        in_macros
        kept_attributes
        lifetimes
        mut_and_unused
        patterns
        receivers
        async_trait
        hand_boxed
        instrument
        native_async_trait
        renamed_import
        tokio_main
    }
}
