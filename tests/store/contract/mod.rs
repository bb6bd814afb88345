//! What every store promises. Each function is one promise, kept by a fresh fixture.

pub(crate) mod atomicity;
pub(crate) mod attempts;
pub(crate) mod concurrency;
pub(crate) mod examples;
pub(crate) mod rates;
pub(crate) mod shadow;

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

macro_rules! promises {
    ($fixture:ident; $($module:ident: $($promise:ident),+;)+) => {$(
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $promise() {
                    let fixture = <super::$fixture as crate::support::Fixture>::new();
                    crate::contract::$module::$promise(fixture).await;
                }
            )+
        }
    )+};
}
