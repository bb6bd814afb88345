//! What every store promises. Each function is one promise, kept by a fresh fixture.

pub(crate) mod atomicity;
pub(crate) mod attempts;
pub(crate) mod concurrency;
pub(crate) mod delays;
pub(crate) mod distinct;
pub(crate) mod examples;
pub(crate) mod free;
pub(crate) mod known;
pub(crate) mod rates;
pub(crate) mod reservations;
pub(crate) mod shadow;
pub(crate) mod waiting;

/// One test for each promise, for the store of one fixture.
macro_rules! hold_to_contract {
    ($fixture:ident) => {
        promises! { $fixture;
            examples:
                a_log_of_five_entries_waits_four_seconds,
                a_thousand_per_five_minutes_in_a_log,
                a_thousand_per_five_minutes_in_buckets,
                ten_per_minute_in_a_moving_window,
                two_counters_fade_the_minute_before,
                a_fixed_window_lasts_from_its_first_request,
                four_rates_hammered_for_a_day;
            rates:
                each_key_has_its_own_budget,
                several_rates_pass_together,
                a_refused_request_costs_nothing,
                a_cost_is_charged_whole_or_not_at_all,
                a_bucket_gives_its_burst_then_its_average,
                a_door_opens_to_the_microsecond,
                standings_say_where_the_key_stands_after_the_decision,
                a_cost_that_no_window_holds_never_passes,
                a_changed_rate_keeps_what_was_counted,
                a_changed_algorithm_begins_anew;
            atomicity:
                a_request_that_passes_is_charged_to_every_limit,
                a_denied_request_is_charged_to_no_limit,
                every_denying_limit_says_so_with_its_own_wait,
                all_keys_of_a_limit_pass_together,
                a_batch_without_charges_is_decided;
            shadow:
                a_shadow_denies_nobody,
                a_shadow_counts_what_others_deny,
                a_shadow_that_refuses_is_not_charged,
                a_shadow_charges_all_its_keys_or_none,
                a_shadow_slot_is_taken_though_another_limit_denies;
            attempts:
                hammering_keeps_the_door_shut,
                a_denied_attempt_is_charged_whatever_denied_it,
                the_door_opens_once_the_hammering_ends,
                a_shadow_counts_attempts_alone;
            free:
                a_free_charge_is_decided_and_never_charged,
                a_free_charge_without_room_denies_what_passes_with_it,
                a_free_attempt_counts_nothing,
                a_free_shadow_denies_nobody_and_counts_nothing;
            concurrency:
                so_many_are_in_flight_and_no_more,
                a_slot_given_back_is_free,
                a_slot_given_back_twice_frees_one,
                a_denied_request_takes_no_slot,
                tasks_hammering_one_key_admit_exactly_as_many,
                tasks_hammering_two_limits_leave_both_exact;
        }

        #[test]
        fn random_histories_are_decided_as_brute_force_decides_them() {
            crate::model::random_histories::<$fixture>();
        }
    };
}

/// What is promised to login forms, for the store of one fixture.
macro_rules! hold_to_outcomes {
    ($fixture:ident) => {
        promises! { $fixture;
            reservations:
                a_guess_that_fails_keeps_its_slot_and_one_that_succeeds_gives_it_back,
                what_is_taken_back_was_never_charged,
                what_was_charged_later_stays,
                a_cost_is_taken_back_whole,
                what_is_taken_back_makes_room_for_what_costs_more,
                a_denied_request_reserves_nothing,
                parallel_guesses_are_as_many_as_there_are_slots,
                parallel_logins_are_all_let_in_as_slots_come_back,
                two_limits_stay_exact_while_slots_come_back,
                what_a_shadow_reserved_is_taken_back_too;
            distinct:
                so_many_different_values_pass_and_no_more,
                a_value_in_the_window_costs_nothing_and_is_as_new_again,
                a_value_that_is_denied_is_not_seen,
                a_door_opens_when_enough_of_the_oldest_leave,
                values_of_one_request_pass_together_or_not_at_all,
                more_values_than_a_rate_counts_never_pass,
                several_rates_tell_apart_together,
                a_request_denied_elsewhere_is_seen_nowhere,
                hammering_with_new_values_keeps_the_door_shut,
                a_value_taken_back_is_new_again,
                a_value_seen_again_is_not_taken_back,
                a_value_that_was_there_before_is_not_taken_back,
                a_changed_count_keeps_what_was_seen;
            known:
                a_known_client_passes_what_does_not_hold_for_it,
                nothing_is_charged_where_it_does_not_hold,
                a_client_is_known_to_one_subject_and_not_to_another,
                a_client_is_known_when_it_is_so_for_every_subject,
                who_names_nobody_is_not_known,
                whether_it_was_known_is_told_when_it_is_remembered,
                the_latest_clients_are_known_and_no_more,
                who_succeeds_again_is_the_latest,
                a_client_is_known_for_a_while;
            delays:
                a_delay_denies_nobody,
                what_has_no_room_is_charged_all_the_same,
                a_delay_is_charged_only_with_what_passes,
                what_counts_by_outcome_is_not_charged_without_room,
                a_failure_without_room_is_charged_afterwards,
                no_slot_is_taken_beyond_the_bound;
        }

        #[test]
        fn random_outcomes_are_settled_as_brute_force_settles_them() {
            crate::model::random_outcomes::<$fixture>();
        }

        #[test]
        fn random_values_are_told_apart_as_brute_force_tells_them() {
            crate::values::random_values::<$fixture>();
        }
    };
}

/// What is promised beside that by a store that knows which requests of its process wait for their outcome.
macro_rules! hold_to_waiting {
    ($fixture:ident) => {
        promises! { $fixture;
            waiting:
                a_denial_beside_a_slot_in_flight_asks_for_a_second,
                a_request_that_died_counts_and_does_not_wait,
                a_guess_under_way_is_not_washed_away,
                what_was_settled_before_a_reset_is_forgotten,
                what_was_reserved_before_a_reset_frees_nobody,
                a_reset_by_hand_washes_no_guess_away_either;
        }
    };
}

macro_rules! promises {
    ($fixture:ident; $($module:ident: $($promise:ident),+;)+) => {$(
        mod $module {
            $(
                #[tokio::test]
                async fn $promise() {
                    let fixture = <super::$fixture as crate::support::Fixture>::new();
                    crate::contract::$module::$promise(fixture).await;
                }
            )+
        }
    )+};
}
