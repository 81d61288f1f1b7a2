//! The protocol has its properties in all states of sizes that are quickly gone through, and loses
//! one as soon as a rule is broken.

use std::collections::BTreeSet;

use lock_model::{Broken, Config, Kinds, LockModel, properties};
use stateright::{Checker, HasDiscoveries, Model};

/// Goes through all states. Returns how many different ones there are.
fn assert_holds(config: Config) -> usize {
    let checker =
        LockModel::new(config).checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

/// How many states are gone through with the rule kept, beside the sizes that are gone through to
/// the end.
const COMPARED: usize = 200_000;

/// The model with the rule broken violates the property, and with the rule kept it does not, as far
/// as both are looked at.
fn assert_needed(rule: Broken, property: &'static str, config: Config) {
    let broken = Config { broken: Some(rule), ..config.clone() };
    let wanted = HasDiscoveries::AllOf(BTreeSet::from([property]));
    let checker = LockModel::new(broken).checker().threads(2).finish_when(wanted);
    let checker = checker.spawn_bfs().join();
    assert!(checker.discovery(property).is_some(), "{rule:?} does not violate {property:?}");

    let states = checker.state_count().min(COMPARED);
    let checker = LockModel::new(config)
        .checker()
        .threads(2)
        .target_state_count(states)
        .finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    assert_no_violation(&checker);
}

fn assert_no_violation(checker: &impl Checker<LockModel>) {
    for property in properties::ALWAYS {
        assert!(checker.discovery(property).is_none(), "{property:?} is violated");
    }
}

fn faults(faults: u8, kinds: Kinds) -> Config {
    Config { faults, kinds, ..Config::default() }
}

fn cancels(cancels: u8) -> Config {
    Config { faults: 0, cancels, ..Config::default() }
}

#[test]
fn two_managers_of_two_waiters_without_faults() {
    let config = Config { faults: 0, cancels: 1, renewals: 1, yields: 1, ..Config::default() };
    let states = assert_holds(config);
    assert!(states > 100_000, "only {states} states");
}

#[test]
fn two_managers_of_one_waiter_and_a_fault_of_any_kind() {
    let states = assert_holds(Config { waiters: 1, cancels: 1, renewals: 1, ..Config::default() });
    assert!(states > 50_000, "only {states} states");
}

#[test]
fn two_managers_of_one_waiter_and_two_faults_but_cuts() {
    let kinds = Kinds { cut: false, ..Kinds::ALL };
    let states = assert_holds(Config { waiters: 1, cancels: 1, ..faults(2, kinds) });
    assert!(states > 50_000, "only {states} states");
}

/// All of them are more than a test has time for.
#[test]
fn the_first_states_of_two_managers_of_two_waiters_and_two_faults_of_any_kind() {
    let checker = LockModel::new(faults(2, Kinds::ALL))
        .checker()
        .threads(2)
        .target_state_count(1_000_000)
        .finish_when(HasDiscoveries::AnyFailures);
    assert_no_violation(&checker.spawn_bfs().join());
}

#[test]
fn three_managers_without_faults() {
    let config = Config { managers: 3, waiters: 1, yields: 1, ..cancels(1) };
    let states = assert_holds(config);
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn leases_of_different_lengths() {
    assert_holds(Config { mixed: true, ..cancels(1) });
}

#[test]
fn a_server_without_pushes() {
    assert_holds(Config { push: false, cancels: 1, waiters: 1, ..Config::default() });
    assert_holds(Config { push: false, ..cancels(1) });
}

#[test]
fn a_foreign_holder() {
    assert_holds(Config { foreign: true, waiters: 1, cancels: 1, ..Config::default() });
}

#[test]
fn a_grant_is_no_lease() {
    let kinds = Kinds { slow: true, pause: true, ..Kinds::NONE };
    assert_needed(Broken::ValidityFromPush, properties::EXCLUSION, faults(1, kinds));
}

#[test]
fn a_lease_counts_from_the_sending() {
    let kinds = Kinds { slow: true, pause: true, ..Kinds::NONE };
    assert_needed(Broken::ValidityFromReply, properties::EXCLUSION, faults(1, kinds));
}

#[test]
fn a_lease_ends_early_by_the_drift() {
    let kinds = Kinds { lag: true, ..Kinds::NONE };
    assert_needed(Broken::NoDrift, properties::EXCLUSION, faults(1, kinds));
}

#[test]
fn a_lease_that_ran_out_is_over() {
    let kinds = Kinds { flush: true, slow: true, ..Kinds::NONE };
    let config = Config { waiters: 1, renewals: 1, ..faults(3, kinds) };
    assert_needed(Broken::Revival, properties::NO_REVIVAL, config);
}

#[test]
fn a_pass_goes_on_under_a_new_token() {
    // A release that is overtaken is enough, without a fault.
    assert_needed(Broken::TokenReusedInPass, properties::EXCLUSION, faults(0, Kinds::NONE));
}

#[test]
fn a_token_whose_question_was_cut_off_is_over() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    assert_needed(Broken::AskAgainAfterCut, properties::CLEAN, faults(1, kinds));
}

#[test]
fn a_token_whose_question_was_cut_off_is_forgotten_again() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    assert_needed(Broken::NoForgetOfStrays, properties::CLEAN, faults(1, kinds));
}

#[test]
fn a_registered_manager_asks_soon() {
    let kinds = Kinds { lost_push: true, ..Kinds::NONE };
    assert_needed(Broken::NoTimerCap, properties::PROGRESS, faults(1, kinds));
}

#[test]
fn a_registered_manager_has_a_timer() {
    let kinds = Kinds { lost_push: true, ..Kinds::NONE };
    assert_needed(Broken::NoTimer, properties::PROGRESS, faults(1, kinds));
    assert_needed(Broken::NoTimer, properties::MOVER, faults(0, Kinds::NONE));
}

#[test]
fn numbers_are_reserved_backwards() {
    let kinds = Kinds { flush: true, ..Kinds::NONE };
    assert_needed(Broken::ForwardBlocks, properties::NOT_AHEAD, faults(0, Kinds::NONE));
    assert_needed(Broken::ForwardBlocks, properties::NUMBERS, faults(1, kinds));
}

#[test]
fn a_block_has_one_number_if_the_last_one_is_not_known() {
    let kinds = Kinds { flush: true, ..Kinds::NONE };
    assert_needed(Broken::BackwardBlockWithoutFence, properties::NUMBERS, faults(1, kinds));
}

#[test]
fn a_release_compares() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    assert_needed(Broken::DeleteWithoutCompare, properties::EXCLUSION, faults(1, kinds));
}

#[test]
fn who_gives_up_is_forgotten() {
    assert_needed(Broken::NoForgetOfWait, properties::CLEAN, cancels(1));
}

#[test]
fn what_is_got_for_nobody_is_released() {
    assert_needed(Broken::NoReleaseWithoutWaiters, properties::CLEAN, cancels(1));
}

#[test]
fn both_tokens_of_a_pass_are_forgotten() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    let config = Config { cancels: 1, ..faults(1, kinds) };
    assert_needed(Broken::ForgetOldOnlyInPass, properties::CLEAN, config);
}

#[test]
fn a_grant_that_nobody_wants_goes_back() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    assert_needed(Broken::NoForgetOfGrant, properties::CLAIMS, faults(1, kinds));
}

#[test]
fn a_grant_is_taken_out_of_the_list() {
    assert_needed(Broken::GrantStaysInList, properties::CLEAN, faults(0, Kinds::NONE));
}

#[test]
fn a_grant_that_overtakes_a_reply_is_remembered() {
    let none = faults(0, Kinds::NONE);
    assert_needed(Broken::GrantIgnoredWhileAsking, properties::CLAIMS, none);
}

#[test]
fn who_is_next_is_told_of_a_gap() {
    let config = Config { yields: 1, ..faults(0, Kinds::NONE) };
    assert_needed(Broken::NoneToldOfYield, properties::YIELDS, config);
}

#[test]
fn who_forgets_its_place_in_a_gap_gives_it_on() {
    let config = Config { managers: 3, waiters: 1, yields: 1, ..cancels(1) };
    assert_needed(Broken::ForgetLeavesFree, properties::YIELDS, config);
}

#[test]
fn a_new_connection_asks_again() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    assert_needed(Broken::NoAskOnReconnect, properties::MOVER, faults(1, kinds));
}

#[test]
fn a_new_connection_forgets_again() {
    let kinds = Kinds { cut: true, ..Kinds::NONE };
    assert_needed(Broken::UnansweredForgetsDropped, properties::CLEAN, faults(1, kinds));
}

#[test]
fn a_lease_is_not_lowered() {
    let kinds = Kinds { lag: true, ..Kinds::NONE };
    let config = Config { mixed: true, renewals: 1, ..faults(1, kinds) };
    assert_needed(Broken::LoweredLease, properties::EXCLUSION, config);
}
