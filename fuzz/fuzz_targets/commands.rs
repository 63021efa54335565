//! Sequences of calls, with steps of the clock and of the configuration between them: the answers of
//! the naive model.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use mailrl_fuzz::{kind, play, step};

/// The first moment that a sequence begins at, in ms since 1970.
const START: u64 = 1_700_000_000_000;
/// How far after it a sequence begins at most, in ms: some days, so that it meets their ends.
const SPREAD: u64 = 200_000_000;

fuzz_target!(|input: &[u8]| {
    let _ = sequence(&mut Unstructured::new(input));
});

fn sequence(bytes: &mut Unstructured<'_>) -> Result<()> {
    let kind = kind(bytes)?;
    let start = START + bytes.int_in_range(0..=SPREAD)?;
    let steps = std::iter::from_fn(|| if bytes.is_empty() { None } else { step(bytes).ok() });
    play(kind, start, steps);
    Ok(())
}
