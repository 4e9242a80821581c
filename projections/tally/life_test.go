package tally_test

import (
	"fmt"
	"math/rand/v2"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

var (
	first = plan.Date{Year: 2025, Month: 11, Day: 21}
	next  = plan.Date{Year: 2025, Month: 12, Day: 21}
	days  = []plan.Date{first, {Year: 2025, Month: 11, Day: 22}, {Year: 2026, Month: 12, Day: 20}}
)

// life is the random events of one contract's stream: ticks that count and ticks that do not, told again and out of turn,
// among whatever else may happen to a period.
type life struct {
	*rand.Rand
	contract  string
	sequences map[string]int64
	asOf      int64
}

func newLife(r *rand.Rand, contract string) *life {
	return &life{r, contract, map[string]int64{}, 1}
}

func (l *life) next() event.Event {
	switch n := l.IntN(100); {
	case n < 3:
		return event.UsageOpened{Contract: l.contract, First: first, Next: next, Cap: 200 + l.Int64N(200), AsOf: l.asOf}
	case n < 8:
		l.asOf += l.Int64N(3) - 1 // now and then an older thing
		return event.UsageCapSet{Account: l.account(), Cap: l.Int64N(300), AsOf: l.asOf}
	case n < 9:
		return event.UsageKeyRevoked{Account: l.contract, Key: l.key()}
	case n < 10 && l.IntN(4) == 0:
		return event.UsageAccountClosed{Account: l.account()}
	case n < 11 && l.IntN(6) == 0:
		return event.UsageClosed{Total: l.Int64N(9), Lines: 1, Digest: []byte{1, 2, byte(l.IntN(256))}}
	case n < 12:
		return event.UsageBalanced{Contract: l.contract, First: first, Next: next, Used: 1}
	case n < 15:
		return event.UsageAdjusted{Day: l.day(), Account: l.account(), Key: l.key(), Endpoint: "GET /me", Requests: l.Int64N(11) - 5}
	case n < 25:
		incarnation, sequence := l.says()
		return event.UsageRefunded{Incarnation: incarnation, Sequence: sequence, Day: l.day(), Counts: l.counts()}
	}
	incarnation, sequence := l.says()
	return event.UsageTicked{Incarnation: incarnation, Sequence: sequence, Day: l.day(), Counts: l.counts()}
}

// says is an incarnation and what number it gives to what it says, one in ten times an old one.
func (l *life) says() (string, int64) {
	incarnation := fmt.Sprintf("i%d", l.IntN(3))
	if l.IntN(10) > 0 {
		l.sequences[incarnation]++
	}
	return incarnation, l.sequences[incarnation]
}

func (l *life) counts() []event.UsageCount {
	counts := make([]event.UsageCount, 1+l.IntN(3))
	for i := range counts {
		counts[i] = event.UsageCount{Account: l.account(), Key: l.key(), Endpoint: []string{"GET /me", "GET /address/verify"}[l.IntN(2)], Requests: l.Int64N(8)}
	}
	return counts
}

func (l *life) account() string {
	return []string{l.contract, l.contract, l.contract + "-sub"}[l.IntN(3)]
}
func (l *life) key() string    { return fmt.Sprintf("%s-k%d", l.contract, l.IntN(3)) }
func (l *life) day() plan.Date { return days[l.IntN(len(days))] }
