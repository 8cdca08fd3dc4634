// A sliding window of distinct scores in a BTreeSet: remove the oldest, insert the newest.
// Usage: btreeset N EVENTS; prints CPU nanoseconds per event.
use std::collections::BTreeSet;

extern "C" {
    // CPU time of the process, in microseconds on POSIX.
    fn clock() -> std::os::raw::c_long;
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (size, events) = (arguments[0], arguments[1]);
    let mut random = Random(88172645463325252);
    // The bits of doubles in (0, 1) order as the doubles do.
    let scores: Vec<u64> = (0..size + events)
        .map(|_| ((random.next() >> 11) as f64 / (1u64 << 53) as f64).to_bits())
        .collect();
    let mut window: BTreeSet<u64> = scores[..size].iter().copied().collect();
    let begin = unsafe { clock() };
    for i in 0..events {
        window.remove(&scores[i]);
        window.insert(scores[size + i]);
    }
    let spent = (unsafe { clock() } - begin) as f64 * 1e3 / events as f64;
    assert!(window.len() <= size);
    println!("{spent}");
}
