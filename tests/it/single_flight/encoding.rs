//! Values that JSON keeps, and values that it does not keep.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    convert::Infallible,
    fmt::Debug,
    sync::atomic::{AtomicUsize, Ordering},
};

use cache_lock::single_flight::{Kind, Recorded};

use super::RECORDED;
use crate::common::fleet::{Fleet, on_both_stores};

on_both_stores!(value_that_json_keeps_is_recorded, value_that_json_loses_stays_in_its_process);

/// How often two processes computed a value that each asked for three times, and what they got.
async fn asked<T>(fleet: &Fleet, value: &T) -> (usize, Vec<T>)
where
    T: Clone + Debug + Send + Sync + 'static,
    Recorded: Kind<T>,
{
    let computed = AtomicUsize::new(0);
    let key = format!("{value:?}").replace(['{', '}'], "").chars().take(40).collect::<String>();
    let key = cache_lock::LockKey::new("value").part(std::any::type_name::<T>()).part(key);
    let mut values = Vec::new();
    for _ in 0..2 {
        let locks = fleet.manager().await;
        for _ in 0..3 {
            let compute = async || {
                computed.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>(value.clone())
            };
            let value = locks.single_flight(key.clone(), &RECORDED, compute).await;
            values.push(value.expect("no error"));
        }
    }
    (computed.into_inner(), values)
}

async fn is_kept<T>(fleet: &Fleet, value: T)
where
    T: Clone + Debug + PartialEq + Send + Sync + 'static,
    Recorded: Kind<T>,
{
    let (computed, values) = asked(fleet, &value).await;
    assert_eq!(computed, 1, "{value:?}");
    assert!(values.iter().all(|got| *got == value), "{value:?}: {values:?}");
}

/// Each process computes it once, and has it as it was computed.
async fn is_lost<T>(fleet: &Fleet, value: T)
where
    T: Clone + Debug + Send + Sync + 'static,
    Recorded: Kind<T>,
{
    let (computed, values) = asked(fleet, &value).await;
    let is_same = |got: &T| format!("{got:?}") == format!("{value:?}");
    assert!(values.iter().all(is_same), "{value:?}: {values:?}");
    assert_eq!(computed, 2, "{value:?}");
}

async fn value_that_json_keeps_is_recorded(fleet: Fleet) {
    is_kept(&fleet, Some(Some(1_u8))).await;
    is_kept(&fleet, None::<Option<u8>>).await;
    is_kept(&fleet, ()).await;
    is_kept(&fleet, (u128::MAX, i128::MIN, u64::MAX, i64::MIN)).await;
    is_kept(&fleet, ('\u{0}', "\u{2028}\"{}\u{7f}".to_owned())).await;
    is_kept(&fleet, vec![0_u8, 255]).await;
    is_kept(&fleet, Ok::<_, String>(vec![Some(true), None])).await;
    is_kept(&fleet, (0..100).map(|n| (n, n.to_string())).collect::<HashMap<i32, _>>()).await;
    is_kept(&fleet, BTreeMap::from([('a', 1), ('"', 2)])).await;
    is_kept(&fleet, (0..100).collect::<HashSet<i32>>()).await;
    is_kept(&fleet, std::time::Duration::from_nanos(1_000_000_001)).await;
    let negative = asked(&fleet, &-0.0_f64).await;
    assert_eq!(negative.0, 1);
    assert!(negative.1.iter().all(|got| got.is_sign_negative()), "{negative:?}");
    // Numbers with all of their digits, of which a careless reader loses the last.
    let mut bits = 0x0123_4567_89ab_cdef_u64;
    let mut doubles = vec![f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1 + 0.2];
    let mut floats = vec![f32::MAX, f32::MIN_POSITIVE, 1e-45, 0.1 + 0.2];
    for _ in 0..2000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        doubles.push(f64::from_bits(bits));
        floats.push(f32::from_bits((bits >> 32) as u32));
    }
    doubles.retain(|number| number.is_finite());
    floats.retain(|number| number.is_finite());
    is_kept(&fleet, doubles).await;
    is_kept(&fleet, floats).await;
}

async fn value_that_json_loses_stays_in_its_process(fleet: Fleet) {
    is_lost(&fleet, Some(None::<u8>)).await;
    is_lost(&fleet, Some(())).await;
    is_lost(&fleet, vec![Some(None::<u8>), None]).await;
    is_lost(&fleet, f64::NAN).await;
    is_lost(&fleet, f32::INFINITY).await;
    is_lost(&fleet, Some(f64::NAN)).await;
    is_lost(&fleet, HashMap::from([("rate".to_owned(), Some(f64::NEG_INFINITY))])).await;
    is_lost(&fleet, BTreeMap::from([((1, 2), 3)])).await;
}
