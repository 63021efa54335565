//! What the targets share: steps out of the fuzzer's bytes.

#[path = "../../core/tests/model/mod.rs"]
mod model;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use mailrl_core::{Lane, Override, WindowKind, Wish};
pub use model::{Step, play};

/// The next step. Small numbers are likely, for they meet each other.
pub fn step(bytes: &mut Unstructured<'_>) -> Result<Step> {
    let step = match bytes.arbitrary::<u8>()? {
        0..=89 => Step::Reserve {
            recipients: number(bytes, 8, 70)?,
            per_minute: sometimes(bytes, 12, 5_000)?,
            per_day: sometimes(bytes, 60, 20_000)?,
            concurrent: sometimes(bytes, 6, 1_024)?,
            lane: lane(bytes)?,
            lease_ms: number(bytes, 120_000, 3_600_000)?,
        },
        90..=119 => Step::Release(bytes.arbitrary::<u16>()?.into()),
        120..=149 => Step::Commit(bytes.arbitrary::<u16>()?.into()),
        150..=159 => Step::Pause(number(bytes, 200_000, 86_400_000)? - 1),
        160..=209 => Step::Forward(time(bytes)?),
        210..=219 => Step::Back(time(bytes)?),
        220..=229 => Step::Switch(kind(bytes)?),
        230..=239 => Step::Limits(number(bytes, 15, 3_000)?, number(bytes, 100, 20_000)?),
        240 => Step::Burst(bytes.int_in_range(1..=400)?, number(bytes, 120_000, 3_600_000)?),
        241..=243 => Step::Override(Override::Reset),
        _ => Step::Override(Override::Set(Wish {
            per_minute: sometimes(bytes, 12, 5_000)?,
            per_day: sometimes(bytes, 60, 20_000)?,
            concurrent: sometimes(bytes, 6, 1_024)?,
        })),
    };
    Ok(step)
}

/// A kind of windows.
pub fn kind(bytes: &mut Unstructured<'_>) -> Result<WindowKind> {
    Ok(if bytes.arbitrary()? {
        WindowKind::Rolling
    } else {
        WindowKind::Calendar
    })
}

fn lane(bytes: &mut Unstructured<'_>) -> Result<Lane> {
    Ok(if bytes.ratio(1_u8, 4_u8)? {
        Lane::Bulk
    } else {
        Lane::Normal
    })
}

/// From 1 to `small` in three of four cases, else to `large`.
fn number(bytes: &mut Unstructured<'_>, small: u32, large: u32) -> Result<u32> {
    let most = if bytes.ratio(3_u8, 4_u8)? { small } else { large };
    bytes.int_in_range(1..=most)
}

fn sometimes(bytes: &mut Unstructured<'_>, small: u32, large: u32) -> Result<Option<u32>> {
    let given = bytes.ratio(1_u8, 3_u8)?;
    given.then(|| number(bytes, small, large)).transpose()
}

/// In ms: some seconds, minutes, hours or a day.
fn time(bytes: &mut Unstructured<'_>) -> Result<u64> {
    let most = *bytes.choose(&[3_000, 90_000, 7_200_000, 100_000_000])?;
    bytes.int_in_range(0..=most)
}
