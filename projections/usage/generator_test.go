package usage_test

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

// eventGenerator makes random events of one contract's stream: ticks that count and ticks that do not, repeated and out of
// order, among whatever else may happen to a period.
type eventGenerator struct {
	*rand.Rand
	contract  string
	sequences map[string]int64
	asOf      int64
}

func newEventGenerator(r *rand.Rand, contract string) *eventGenerator {
	return &eventGenerator{r, contract, map[string]int64{}, 1}
}

func (l *eventGenerator) nextEvent() event.Event {
	switch n := l.IntN(100); {
	case n < 3:
		return event.UsageOpened{Contract: l.contract, First: first, Next: next, Cap: 200 + l.Int64N(200), AsOfPosition: l.asOf}
	case n < 8:
		l.asOf += l.Int64N(3) - 1 // sometimes an older one
		return event.UsageCapSet{Account: l.randomAccount(), Cap: l.Int64N(300), AsOfPosition: l.asOf}
	case n < 9:
		return event.UsageKeyRevoked{Account: l.contract, Key: l.randomKey()}
	case n < 10 && l.IntN(4) == 0:
		return event.UsageAccountClosed{Account: l.randomAccount()}
	case n < 11 && l.IntN(6) == 0:
		return event.UsageClosed{Total: l.Int64N(9), LineCount: 1, Digest: []byte{1, 2, byte(l.IntN(256))}}
	case n < 12:
		return event.UsageSnapshotTaken{Contract: l.contract, First: first, Next: next, Used: 1}
	case n < 15:
		return event.UsageAdjusted{Day: l.randomDay(), Account: l.randomAccount(), Key: l.randomKey(), Endpoint: "GET /me", Requests: l.Int64N(11) - 5}
	case n < 25:
		incarnation, sequence := l.nextSequence()
		return event.UsageRefunded{InstanceID: incarnation, Sequence: sequence, Day: l.randomDay(), Counts: l.randomCounts()}
	}
	incarnation, sequence := l.nextSequence()
	return event.UsageTicked{InstanceID: incarnation, Sequence: sequence, Day: l.randomDay(), Counts: l.randomCounts()}
}

// nextSequence returns an instance and its next sequence number, one time in ten an old one.
func (l *eventGenerator) nextSequence() (string, int64) {
	incarnation := fmt.Sprintf("i%d", l.IntN(3))
	if l.IntN(10) > 0 {
		l.sequences[incarnation]++
	}
	return incarnation, l.sequences[incarnation]
}

func (l *eventGenerator) randomCounts() []event.UsageCount {
	counts := make([]event.UsageCount, 1+l.IntN(3))
	for i := range counts {
		counts[i] = event.UsageCount{Account: l.randomAccount(), Key: l.randomKey(), Endpoint: []string{"GET /me", "GET /address/verify"}[l.IntN(2)], Requests: l.Int64N(8)}
	}
	return counts
}

func (l *eventGenerator) randomAccount() string {
	return []string{l.contract, l.contract, l.contract + "-sub"}[l.IntN(3)]
}

func (l *eventGenerator) randomKey() string { return fmt.Sprintf("%s-k%d", l.contract, l.IntN(3)) }

func (l *eventGenerator) randomDay() plan.Date { return days[l.IntN(len(days))] }
