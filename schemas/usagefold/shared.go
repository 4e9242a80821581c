package usagefold

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// This file folds a stream that the periods of several contracts share. Such a stream is an interleaving of the streams that each
// period would have alone, so that its fold is one PeriodState for each of them:
//
//	shared stream ──event──► SharedState.Apply ──PeriodEvent──► what the period's own stream would hold, with its verdict
//
// Nothing that happens to one period changes a verdict of another one. A period is in one stream from its beginning to its end, that
// of the month in which it begins, so that nothing is carried from one stream to the next.

// MonthStreamName is the name of the stream that decides over how many streams the contracts of a month are spread.
func MonthStreamName(month string) string { return "usage-" + month }

// MonthOf is the month that a day is in, 2026-11.
func MonthOf(day plan.Date) string { return day.String()[:len("2026-11")] }

// SharedStreamName is the name of a shared stream: usage-2026-11.3, the periods that begin in November 2026 of the contracts of shard 3.
func SharedStreamName(month string, shard int64) string {
	return MonthStreamName(month) + "." + strconv.FormatInt(shard, 10)
}

// ParseSharedStreamName returns the month and the shard in the name of a shared stream; false for other streams.
func ParseSharedStreamName(stream string) (month string, shard int64, ok bool) {
	month, number, found := strings.Cut(strings.TrimPrefix(stream, "usage-"), ".")
	shard, err := strconv.ParseInt(number, 10, 64)
	return month, shard, found && err == nil && shard >= 0 && isMonth(month) && SharedStreamName(month, shard) == stream
}

// ParseMonthStreamName returns the month in the name of the stream of a month; false for other streams.
func ParseMonthStreamName(stream string) (month string, ok bool) {
	month, found := strings.CutPrefix(stream, "usage-")
	return month, found && isMonth(month)
}

func isMonth(text string) bool {
	_, err := time.Parse("2006-01", text)
	return err == nil
}

// ShardOf returns the shard of a contract in a month with a number of shards. Logs hold what follows from it, so it must never change.
func ShardOf(contract string, shards int64) int64 {
	h := fnv.New64a()
	h.Write([]byte(contract))
	return int64(h.Sum64() % uint64(max(shards, 1)))
}

// SharedState is the fold of a shared stream. The zero SharedState is that of a stream without events. It is not safe for concurrent
// use.
type SharedState struct {
	periods       map[event.PeriodRef]*PeriodState
	keys          numbers[event.UsedKey]
	endpoints     numbers[string]
	lastSequences map[string]int64 // of ticks, by instance id
}

// numbers gives each value a number, in the order in which they come.
type numbers[T comparable] struct {
	values []T
	byName map[T]int64
}

// add returns the number of a value, a new one if it has none.
func (n *numbers[T]) add(value T) int64 {
	number, ok := n.byName[value]
	if !ok {
		if n.byName == nil {
			n.byName = map[T]int64{}
		}
		number = int64(len(n.values))
		n.values, n.byName[value] = append(n.values, value), number
	}
	return number
}

// resolve returns the value of a number. Negative numbers count from -1 in the values that an event names itself.
func (n *numbers[T]) resolve(number int64, named []T) (value T, ok bool) {
	if number < 0 {
		number, n = -number-1, &numbers[T]{values: named}
	}
	if number < 0 || number >= int64(len(n.values)) {
		return value, false
	}
	return n.values[number], true
}

// PeriodEvent is what an event of a shared stream is to one period: the event that a stream of the period alone would hold, and its
// verdict. State is that of the period after it, nil if the stream has not opened it.
type PeriodEvent struct {
	event.PeriodRef
	State   *PeriodState
	Event   event.Event
	Verdict Verdict
}

// Period returns the state of a period, or nil if the stream has none of it.
func (s *SharedState) Period(p event.PeriodRef) *PeriodState { return s.periods[p] }

// Items returns how many keys and periods a snapshot has to hold.
func (s *SharedState) Items() int { return len(s.keys.values) + len(s.periods) }

// Apply folds the next event of the stream and returns what it is to each period that it is about. recorded is when the log recorded it.
// An event of another type, or one about no period, changes nothing.
func (s *SharedState) Apply(e event.Event, recorded time.Time) []PeriodEvent {
	switch e := e.(type) {
	case event.SharedUsageTicked:
		return s.applyTick(e)
	case event.UsageOpened:
		return s.applyTo(event.PeriodRef{Contract: e.Contract, First: e.First}, e, recorded)
	case event.SharedUsageCapSet:
		return s.applyTo(e.PeriodRef, e.UsageCapSet, recorded)
	case event.SharedUsageKeyRevoked:
		return s.applyTo(e.PeriodRef, e.UsageKeyRevoked, recorded)
	case event.SharedUsageAccountClosed:
		return s.applyTo(e.PeriodRef, e.UsageAccountClosed, recorded)
	case event.SharedUsageRefunded:
		return s.applyTo(e.PeriodRef, e.UsageRefunded, recorded)
	case event.SharedUsageEnded:
		return s.applyTo(e.PeriodRef, e, recorded)
	}
	return nil
}

// applyTo folds an event of one period.
func (s *SharedState) applyTo(ref event.PeriodRef, e event.Event, recorded time.Time) []PeriodEvent {
	p := s.periods[ref]
	if _, opens := e.(event.UsageOpened); opens && p == nil {
		if s.periods == nil {
			s.periods = map[event.PeriodRef]*PeriodState{}
		}
		p = &PeriodState{}
		s.periods[ref] = p
	}
	if p == nil {
		return []PeriodEvent{{ref, nil, e, PeriodNotOpen}}
	}
	return []PeriodEvent{{ref, p, e, p.Apply(e, recorded)}}
}

// applyTick counts the lines of each period as a whole or not at all.
func (s *SharedState) applyTick(e event.SharedUsageTicked) []PeriodEvent {
	for _, k := range e.Keys {
		s.keys.add(k)
	}
	for _, endpoint := range e.Endpoints {
		s.endpoints.add(endpoint)
	}
	isNew := s.recordSequence(e.InstanceID, e.Sequence)
	ticks := s.divideTick(e)
	for i := range ticks {
		t := &ticks[i]
		t.State = s.periods[t.PeriodRef]
		switch {
		case t.Verdict == Unnumbered:
		case t.State == nil || !t.State.opened:
			t.Verdict = PeriodNotOpen
		case t.State.ended:
			t.Verdict = PeriodClosed
		case !isNew:
			t.Verdict = Duplicate
		default:
			t.Verdict = t.State.applyCounts(t.Event.(event.UsageTicked).Counts)
		}
	}
	return ticks
}

// recordSequence notes the sequence of a tick, even if all of its lines turn out void.
func (s *SharedState) recordSequence(instanceID string, sequence int64) (isNew bool) {
	if sequence <= s.lastSequences[instanceID] {
		return false
	}
	if s.lastSequences == nil {
		s.lastSequences = map[string]int64{}
	}
	s.lastSequences[instanceID] = sequence
	return true
}

// divideTick returns the tick of each period, in the order of their first lines. Lines whose key or endpoint has no number are void, and
// of no period.
func (s *SharedState) divideTick(e event.SharedUsageTicked) []PeriodEvent {
	d := tickDivision{
		ticks: make([]PeriodEvent, 0, len(e.Lines)/3), counts: make([][]event.UsageCount, 0, len(e.Lines)/3),
		room: make([]event.UsageCount, 0, len(e.Lines)/3), isSorted: true,
	}
	for i := 0; i+2 < len(e.Lines); i += 3 {
		key, hasKey := s.keys.resolve(e.Lines[i], e.Keys)
		endpoint, hasEndpoint := s.endpoints.resolve(e.Lines[i+1], e.Endpoints)
		verdict := Counted
		if !hasKey || !hasEndpoint {
			key, verdict = event.UsedKey{}, Unnumbered
		}
		d.add(key.PeriodRef, verdict, event.UsageCount{Account: key.Account, Key: key.Key, Endpoint: endpoint, Requests: e.Lines[i+2]})
	}
	for i := range d.ticks {
		d.ticks[i].Event = event.UsageTicked{InstanceID: e.InstanceID, Sequence: e.Sequence, Day: e.Day, AsOfRevision: e.AsOfRevision, Counts: d.counts[i]}
	}
	return d.ticks
}

// tickDivision collects the ticks of periods. Those who write ticks sort the lines by period, so that few steps are needed.
type tickDivision struct {
	ticks    []PeriodEvent
	counts   [][]event.UsageCount // of each
	room     []event.UsageCount   // for all counts that follow each other
	isSorted bool                 // the periods of the ticks rise
}

// add adds a line to the tick of its period.
func (d *tickDivision) add(ref event.PeriodRef, verdict Verdict, c event.UsageCount) {
	at := d.find(ref, verdict)
	switch {
	case at == len(d.ticks):
		d.ticks, d.counts = append(d.ticks, PeriodEvent{PeriodRef: ref, Verdict: verdict}), append(d.counts, nil)
		d.room = append(d.room, c)
		d.counts[at] = d.room[len(d.room)-1 : len(d.room) : len(d.room)]
	case at == len(d.ticks)-1: // its counts are the last ones
		d.room = append(d.room, c)
		d.counts[at] = d.room[len(d.room)-1-len(d.counts[at]) : len(d.room) : len(d.room)]
	default:
		d.counts[at] = append(d.counts[at], c)
	}
}

// isBefore reports whether the period of this tick comes before another one, as CompareLines sorts them.
func (e PeriodEvent) isBefore(ref event.PeriodRef) bool {
	return cmp.Or(strings.Compare(e.Contract, ref.Contract), compareDates(e.First, ref.First)) < 0
}

// find returns the tick of a period, or how many there are if it has none.
func (d *tickDivision) find(ref event.PeriodRef, verdict Verdict) int {
	n := len(d.ticks)
	if n == 0 || d.ticks[n-1].PeriodRef == ref && d.ticks[n-1].Verdict == verdict {
		return max(n-1, 0)
	}
	if d.isSorted = d.isSorted && d.ticks[n-1].isBefore(ref); d.isSorted {
		return n
	}
	at := slices.IndexFunc(d.ticks, func(t PeriodEvent) bool { return t.PeriodRef == ref && t.Verdict == verdict })
	if at < 0 {
		return n
	}
	return at
}

// SharedLine is a line of a tick before its key and endpoint are replaced by numbers.
type SharedLine struct {
	event.UsedKey
	Endpoint string
	Requests int64
}

// CompareLines is the order of lines in a tick: those of a period are next to each other.
func CompareLines(a, b SharedLine) int {
	return cmp.Or(strings.Compare(a.Contract, b.Contract), compareDates(a.First, b.First), strings.Compare(a.Account, b.Account),
		strings.Compare(a.Key, b.Key), strings.Compare(a.Endpoint, b.Endpoint))
}

func compareDates(a, b plan.Date) int {
	return cmp.Or(cmp.Compare(a.Year, b.Year), cmp.Compare(a.Month, b.Month), cmp.Compare(a.Day, b.Day))
}

// BuildTick sets the lines of a tick, sorted, with the numbers that keys and endpoints have in the state; it names those that have none.
func (s *SharedState) BuildTick(tick event.SharedUsageTicked, lines []SharedLine) event.SharedUsageTicked {
	slices.SortFunc(lines, CompareLines)
	var keys numbers[event.UsedKey]
	var endpoints numbers[string]
	tick.Lines = make([]int64, 0, 3*len(lines))
	for _, l := range lines {
		tick.Lines = append(tick.Lines, numberIn(s.keys, &keys, l.UsedKey), numberIn(s.endpoints, &endpoints, l.Endpoint), l.Requests)
	}
	tick.Keys, tick.Endpoints = keys.values, endpoints.values
	return tick
}

// numberIn returns the number of a value that has one, and otherwise its negative number among those that an event names.
func numberIn[T comparable](known numbers[T], named *numbers[T], value T) int64 {
	if number, ok := known.byName[value]; ok {
		return number
	}
	return -1 - named.add(value)
}

// itemsPerPart is how many keys, endpoints, accounts and sequences a part of a snapshot holds at most. An event of that size fits every log.
const itemsPerPart = 2000

// Snapshot is the state as events, for a stream that was folded up to revision asOf. The same state always gives the same events.
func (s *SharedState) Snapshot(instanceID string, asOf int64) []event.SharedUsageSnapshotTaken {
	parts := []event.SharedUsageSnapshotTaken{{}}
	room := itemsPerPart
	part := func() *event.SharedUsageSnapshotTaken { // with room for one more item
		if room == 0 {
			parts, room = append(parts, event.SharedUsageSnapshotTaken{}), itemsPerPart
		}
		room--
		return &parts[len(parts)-1]
	}
	for _, k := range s.keys.values {
		p := part()
		p.Keys = append(p.Keys, k)
	}
	for _, endpoint := range s.endpoints.values {
		p := part()
		p.Endpoints = append(p.Endpoints, endpoint)
	}
	for _, id := range slices.Sorted(maps.Keys(s.lastSequences)) {
		p := part()
		p.Sequences = append(p.Sequences, event.UsageInstanceSequence{InstanceID: id, Sequence: s.lastSequences[id]})
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.periods), comparePeriods) {
		for _, piece := range s.periods[ref].pieces(ref) {
			p := part()
			p.Periods = append(p.Periods, piece)
			room = max(room-len(piece.Accounts)-len(piece.RevokedKeys)-len(piece.Sequences), 0)
		}
	}
	for i := range parts {
		parts[i].InstanceID, parts[i].AsOfRevision, parts[i].Part, parts[i].Parts = instanceID, asOf, int64(i+1), int64(len(parts))
	}
	return parts
}

func comparePeriods(a, b event.PeriodRef) int {
	return cmp.Or(a.First.Start().Compare(b.First.Start()), strings.Compare(a.Contract, b.Contract))
}

// itemsPerPiece is how many accounts, or revoked keys, a SharedPeriodState holds at most.
const itemsPerPiece = 500

// pieces returns the state, as several if it has many accounts or revoked keys. A period that is not opened has none.
func (p *PeriodState) pieces(ref event.PeriodRef) (all []event.SharedPeriodState) {
	if !p.opened {
		return nil
	}
	whole := p.Snapshot(0)
	accounts, revoked := whole.Accounts, whole.RevokedKeys
	for {
		a, r := min(len(accounts), itemsPerPiece), min(len(revoked), itemsPerPiece)
		all = append(all, event.SharedPeriodState{PeriodRef: ref, Next: whole.Next, Used: whole.Used, Accounts: accounts[:a], RevokedKeys: revoked[:r], IsEnded: p.ended})
		accounts, revoked = accounts[a:], revoked[r:]
		if len(accounts)+len(revoked) == 0 {
			break
		}
	}
	all[0].Sequences = whole.Sequences
	return all
}

// RestoreShared is the state in all parts of a snapshot, in their order. Its fold continues with the revision after AsOfRevision.
func RestoreShared(parts []event.SharedUsageSnapshotTaken) *SharedState {
	s := &SharedState{periods: map[event.PeriodRef]*PeriodState{}, lastSequences: map[string]int64{}}
	for _, part := range parts {
		for _, k := range part.Keys {
			s.keys.add(k)
		}
		for _, endpoint := range part.Endpoints {
			s.endpoints.add(endpoint)
		}
		for _, last := range part.Sequences {
			s.lastSequences[last.InstanceID] = last.Sequence
		}
		for _, piece := range part.Periods {
			if p := s.periods[piece.PeriodRef]; p != nil {
				p.restoreAccounts(piece.Accounts, piece.RevokedKeys, piece.Sequences)
				continue
			}
			p := RestorePeriod(event.UsageSnapshotTaken{
				Contract: piece.Contract, First: piece.First, Next: piece.Next, Used: piece.Used,
				Accounts: piece.Accounts, RevokedKeys: piece.RevokedKeys, Sequences: piece.Sequences,
			})
			p.ended = piece.IsEnded
			s.periods[piece.PeriodRef] = p
		}
	}
	return s
}

// SnapshotParts collects the parts of snapshots from a stream that is read backward. The zero SnapshotParts has none.
type SnapshotParts struct {
	found map[string][]event.SharedUsageSnapshotTaken
}

// Add adds a part and returns all parts of its snapshot in their order once it has them.
func (c *SnapshotParts) Add(e event.SharedUsageSnapshotTaken) (parts []event.SharedUsageSnapshotTaken, isComplete bool) {
	if c.found == nil {
		c.found = map[string][]event.SharedUsageSnapshotTaken{}
	}
	name := fmt.Sprintf("%s %d %d", e.InstanceID, e.AsOfRevision, e.Parts)
	if !slices.ContainsFunc(c.found[name], func(p event.SharedUsageSnapshotTaken) bool { return p.Part == e.Part }) {
		c.found[name] = append(c.found[name], e)
	}
	if parts = c.found[name]; int64(len(parts)) < e.Parts {
		return nil, false
	}
	slices.SortFunc(parts, func(a, b event.SharedUsageSnapshotTaken) int { return cmp.Compare(a.Part, b.Part) })
	return parts, true
}
