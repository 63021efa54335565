//! Looks at something again and again, and tells when it has become another.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// How often is looked. With [`SETTLED`], a change counts within a second.
const EVERY: Duration = Duration::from_millis(500);
/// For how long something must stand as it is before it counts: longer than a file is being written.
const SETTLED: Duration = Duration::from_millis(100);

/// Looks for ever, and tells each time that what is seen differs from `seen`, or from what was told
/// last. `look` may block.
pub(super) async fn watch<T>(
    look: impl Fn() -> T + Send + Sync + 'static,
    mut seen: T,
    mut changed: impl FnMut(&T),
) where
    T: PartialEq + Send + 'static,
{
    let look = Arc::new(look);
    let look = || {
        let look = look.clone();
        spawn_blocking(move || look())
    };
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // It fails if `look` panics, or the runtime ends: nothing was seen.
        let Ok(now) = look().await else { continue };
        if now == seen {
            continue;
        }
        sleep(SETTLED).await;
        if look().await.is_ok_and(|still| still == now) {
            seen = now;
            changed(&seen);
        }
    }
}
