// The baselines of Tatti's paper, compiled: a sliding window, its AUC read after every so many events.
//
//     baselines KIND SIZE EVERY SECONDS < events
//
// KIND is one of
//   tree    Brzezinski and Stefanowski, "Prequential AUC": a balanced tree in which an event comes
//           and goes in O(log n), swept in O(n) at each reading
//   tatti   Tatti (2018), "Efficient estimation of AUC in a sliding window", epsilon 0.1: negatives
//           in groups between which the head counts of positives grow by a factor of 1 + epsilon
//   bins    a count per class and bin, 100 bins over the range of the scores
// On standard input: how many events (uint64), their scores (doubles), their labels (bytes). Prints
// CPU nanoseconds per event, then every reading; it ends after SECONDS at the latest.
#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

struct Tree {
    std::map<double, std::pair<int64_t, int64_t>> blocks;
    int64_t totals[2] = {0, 0};

    explicit Tree(const std::vector<double> &) {}
    void add(double score, int label) {
        auto &block = blocks[score];
        ++(label ? block.second : block.first);
        ++totals[label];
    }
    void remove(double score, int label) {
        const auto at = blocks.find(score);
        auto &block = at->second;
        --(label ? block.second : block.first);
        if (block.first + block.second == 0) blocks.erase(at);
        --totals[label];
    }
    double auc() const {
        int64_t below = 0, twice_u = 0;
        for (const auto &[score, block] : blocks) {
            twice_u += block.second * (2 * below + block.first);
            below += block.first;
        }
        return 0.5 * static_cast<double>(twice_u) / static_cast<double>(totals[0] * totals[1]);
    }
};

struct Tatti {
    using Key = std::pair<double, uint64_t>;  // the number tells equal scores apart
    using Ranked = __gnu_pbds::tree<Key, __gnu_pbds::null_type, std::less<Key>,
                                    __gnu_pbds::rb_tree_tag,
                                    __gnu_pbds::tree_order_statistics_node_update>;
    Ranked classes[2];
    uint64_t entered = 0;
    static constexpr double epsilon = 0.1;

    explicit Tatti(const std::vector<double> &) {}
    void add(double score, int label) { classes[label].insert({score, entered++}); }
    void remove(double score, int label) {
        classes[label].erase(classes[label].lower_bound({score, 0}));
    }
    static int64_t below(const Ranked &ranked, double score) {
        return static_cast<int64_t>(ranked.order_of_key({score, 0}));
    }
    static int64_t up_to(const Ranked &ranked, double score) {
        return static_cast<int64_t>(ranked.order_of_key({score, UINT64_MAX}));
    }
    double auc() const {
        const Ranked &negatives = classes[0], &positives = classes[1];
        const int64_t all = positives.size();
        int64_t above = 0, unseen = negatives.size(), twice_u = 0;
        while (above < all) {
            const auto grown = static_cast<int64_t>(std::floor((1 + epsilon) * above));
            const int64_t reach = std::min(std::max(above + 1, grown), all);
            const double score = positives.find_by_order(all - reach)->first;
            const int64_t higher = all - up_to(positives, score);
            const int64_t high = all - below(positives, score);
            const int64_t between = up_to(negatives, score);
            // Those strictly between two groups see as many as the middle of their bounds; those
            // beside a score see the positives above it and half of those at it.
            twice_u += (above + higher) * (unseen - between);
            unseen = below(negatives, score);
            twice_u += (higher + high) * (between - unseen);
            above = high;
        }
        twice_u += 2 * above * unseen;
        return 0.5 * static_cast<double>(twice_u) /
               (static_cast<double>(all) * static_cast<double>(negatives.size()));
    }
};

struct Bins {
    static constexpr int count = 100;
    int64_t bins[count][2] = {}, totals[2] = {0, 0};
    double low, width;

    explicit Bins(const std::vector<double> &scores) {
        const auto ends = std::minmax_element(scores.begin(), scores.end());
        low = *ends.first;
        width = (*ends.second - low) / count;
    }
    int place(double score) const {
        return std::min(static_cast<int>((score - low) / width), count - 1);
    }
    void add(double score, int label) { ++bins[place(score)][label], ++totals[label]; }
    void remove(double score, int label) { --bins[place(score)][label], --totals[label]; }
    double auc() const {
        int64_t below = 0, twice_u = 0;
        for (const auto &bin : bins) {
            twice_u += bin[1] * (2 * below + bin[0]);
            below += bin[0];
        }
        return 0.5 * static_cast<double>(twice_u) / static_cast<double>(totals[0] * totals[1]);
    }
};

double now() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Window>
int run(size_t size, size_t every, double seconds, const std::vector<double> &scores,
        const std::vector<uint8_t> &labels) {
    Window window(scores);
    for (size_t i = 0; i < size; ++i) window.add(scores[i], labels[i]);
    std::vector<double> readings;
    const double begin = now();
    double spent = 0;
    size_t done = 0, look = 1;  // the clock costs more than some events do
    while (size + done + every <= scores.size() && spent < seconds) {
        for (const size_t end = done + every; done < end; ++done) {
            window.remove(scores[done], labels[done]);
            window.add(scores[size + done], labels[size + done]);
        }
        readings.push_back(window.auc());
        if (readings.size() < look) continue;
        spent = now() - begin;
        look += spent < seconds / 100 ? look : readings.size() / 16 + 1;
    }
    std::printf("%.17g\n", (now() - begin) / static_cast<double>(done) * 1e9);
    for (const double reading : readings) std::printf("%.17g\n", reading);
    return 0;
}

int main(int, char **arguments) {
    const std::string kind = arguments[1];
    const size_t size = std::strtoull(arguments[2], nullptr, 10);
    const size_t every = std::strtoull(arguments[3], nullptr, 10);
    const double seconds = std::strtod(arguments[4], nullptr);
    uint64_t count;
    if (std::fread(&count, sizeof count, 1, stdin) != 1) return 1;
    std::vector<double> scores(count);
    std::vector<uint8_t> labels(count);
    if (std::fread(scores.data(), sizeof(double), count, stdin) != count) return 1;
    if (std::fread(labels.data(), 1, count, stdin) != count) return 1;
    if (kind == "tree") return run<Tree>(size, every, seconds, scores, labels);
    if (kind == "tatti") return run<Tatti>(size, every, seconds, scores, labels);
    if (kind == "bins") return run<Bins>(size, every, seconds, scores, labels);
    return 2;
}
