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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::{Instant, advance};

    use super::*;

    /// What is looked at, and what was told of it and when.
    #[derive(Clone, Default)]
    struct World {
        stands: Arc<Mutex<u32>>,
        told: Arc<Mutex<Vec<(u32, Instant)>>>,
    }

    impl World {
        fn watched() -> Self {
            let world = Self::default();
            let (stands, told) = (world.stands.clone(), world.told.clone());
            let look = move || *stands.lock().unwrap();
            let changed = move |&now: &u32| told.lock().unwrap().push((now, Instant::now()));
            tokio::spawn(watch(look, 0, changed));
            world
        }

        fn becomes(&self, value: u32) {
            *self.stands.lock().unwrap() = value;
        }

        fn told(&self) -> Vec<u32> {
            self.told
                .lock()
                .unwrap()
                .iter()
                .map(|(value, _)| *value)
                .collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_told_once_and_within_a_second_whenever_it_comes() {
        for after_ms in [0, 1, 250, 499, 500, 501] {
            let world = World::watched();
            sleep(Duration::from_millis(after_ms)).await;
            world.becomes(1);
            let at = Instant::now();
            sleep(Duration::from_secs(5)).await;
            let told = world.told.lock().unwrap();
            assert_eq!(told.len(), 1);
            assert!(
                told[0].1 - at < Duration::from_secs(1),
                "{after_ms}: {:?}",
                told[0].1 - at
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_another_for_a_moment_only_is_not_told() {
        let world = World::watched();
        for start in (0..2_000).step_by(20) {
            advance(Duration::from_millis(start % 7)).await;
            world.becomes(1);
            sleep(SETTLED / 2).await;
            world.becomes(0);
            sleep(EVERY).await;
        }
        assert!(world.told().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_being_written_is_told_when_it_is_done() {
        let world = World::watched();
        for part in 1..=40 {
            world.becomes(part);
            sleep(SETTLED / 2).await;
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.told(), [40]);
    }
}
