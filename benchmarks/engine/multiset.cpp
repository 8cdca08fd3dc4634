// A sliding window of scores in a std::multiset: erase the oldest, insert the newest.
// Usage: multiset N EVENTS; prints CPU nanoseconds per event.
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

int main(int, char **arguments) {
    const std::size_t size = std::strtoull(arguments[1], nullptr, 10);
    const std::size_t events = std::strtoull(arguments[2], nullptr, 10);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform;
    std::vector<double> scores(size + events);
    for (double &score : scores) score = uniform(random);
    std::multiset<double> window(scores.begin(), scores.begin() + size);
    const auto begin = std::clock();
    for (std::size_t i = 0; i < events; ++i) {
        window.erase(window.find(scores[i]));
        window.insert(scores[size + i]);
    }
    const double spent = 1e9 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (window.size() != size) return 1;
    std::printf("%f\n", spent / static_cast<double>(events));
}
