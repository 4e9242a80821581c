package event

import (
	"encoding/json"
	"errors"

	"lieudit/schemas/plan"
)

// The events of streams that the periods of several contracts share, usage-2026-11.3 say: one for each month and shard, with the
// periods that begin in the month. An event that is about one period names it in the members contract and first, so that a program
// that cannot decode the event stops that contract and no other. UsageOpened has these members too.

// PeriodRef names a contract's period by its first day.
type PeriodRef struct {
	Contract string    `json:"contract"`
	First    plan.Date `json:"first"`
}

// SharedUsageCapSet is the UsageCapSet of a period.
type SharedUsageCapSet struct {
	PeriodRef
	UsageCapSet
}

// SharedUsageKeyRevoked is the UsageKeyRevoked of a period.
type SharedUsageKeyRevoked struct {
	PeriodRef
	UsageKeyRevoked
}

// SharedUsageAccountClosed is the UsageAccountClosed of a period.
type SharedUsageAccountClosed struct {
	PeriodRef
	UsageAccountClosed
}

// SharedUsageRefunded is the UsageRefunded of a period.
type SharedUsageRefunded struct {
	PeriodRef
	UsageRefunded
}

// SharedUsageEnded ends the counting of a period: no later tick or refund counts, so that its lines can be added up and closed.
type SharedUsageEnded struct{ PeriodRef }

// SharedUsageTicked proposes that requests of several periods are counted. Those of each period count as a whole or not at all, which
// the events before it in its stream decide for that period alone.
//
// Keys and endpoints have numbers: those that a stream names first have 0, the next 1, and so on. The event names those which had none
// as of AsOfRevision; its lines number them from -1 down. Another instance may have named them meanwhile, in which case they keep
// the number that they have.
type SharedUsageTicked struct {
	InstanceID   string    `json:"incarnation"`
	Sequence     int64     `json:"sequence"` // grows with every tick and refund of the instance
	Day          plan.Date `json:"day"`
	AsOfRevision int64     `json:"asOf"` // revision up to which the instance had folded the stream
	Keys         []UsedKey `json:"keys,omitempty"`
	Endpoints    []string  `json:"endpoints,omitempty"`
	Lines        []int64   `json:"lines"` // three for each line: the number of the key, that of the endpoint, and how many requests
}

// UsedKey is a key of an account in a period.
type UsedKey struct {
	PeriodRef
	Account string `json:"account"`
	Key     string `json:"key"`
}

var errIncompleteLine = errors.New("a line of a tick is three numbers")

func (e SharedUsageTicked) validateFields() error {
	if len(e.Lines)%3 != 0 {
		return errIncompleteLine
	}
	return nil
}

// SharedUsageSnapshotTaken is a part of the state of a shared stream as of a revision. A reader that has all Parts of an instance with
// one AsOfRevision can begin there. Part is from 1 to Parts.
type SharedUsageSnapshotTaken struct {
	InstanceID   string                  `json:"incarnation"`
	AsOfRevision int64                   `json:"asOf"`
	Part         int64                   `json:"part"`
	Parts        int64                   `json:"parts"`
	Keys         []UsedKey               `json:"keys,omitempty"`      // in the order of their numbers, after those of the part before
	Endpoints    []string                `json:"endpoints,omitempty"` // likewise
	Periods      []SharedPeriodState     `json:"periods,omitempty"`
	Sequences    []UsageInstanceSequence `json:"said,omitempty"` // of ticks
}

// SharedPeriodState is the state of a period in a shared stream.
type SharedPeriodState struct {
	PeriodRef
	Next        plan.Date               `json:"next"`
	Used        int64                   `json:"used"`
	Accounts    []UsageAccountState     `json:"accounts"`
	RevokedKeys []string                `json:"revoked,omitempty"`
	Sequences   []UsageInstanceSequence `json:"said,omitempty"` // of refunds
	IsEnded     bool                    `json:"ended,omitempty"`
}

// UsageMonthOpened decides over how many streams the contracts are spread whose periods begin in a month. It is the first event of the
// stream of the month, and later ones change nothing.
type UsageMonthOpened struct {
	Month  string `json:"month"` // 2026-11
	Shards int64  `json:"shards"`
}

// UsageCountedIn is the first event of a period's own stream if its requests are counted in a shared one. What follows it there are the
// period's lines, its closing and corrections, which outlive the shared stream. A program that does not know the event cannot count in
// the period.
type UsageCountedIn struct {
	PeriodRef
	Stream string `json:"stream"`
}

// UsageLinesStated copies accounts and lines of an ended period from the shared stream to its own. A large period needs several; the
// UsageClosed after them covers the lines of all.
type UsageLinesStated struct {
	PeriodRef
	Next     plan.Date           `json:"next"`
	Used     int64               `json:"used"` // by the contract, all lines together
	Accounts []UsageAccountState `json:"accounts,omitempty"`
	Lines    []UsageLineStated   `json:"lines,omitempty"`
}

// UsageLineStated is a line of the period.
type UsageLineStated struct {
	Day plan.Date `json:"day"`
	UsageCount
}

// EventType is the wire name.
func (SharedUsageCapSet) EventType() string        { return "usage.shared-cap-set.v1" }
func (SharedUsageKeyRevoked) EventType() string    { return "usage.shared-key-revoked.v1" }
func (SharedUsageAccountClosed) EventType() string { return "usage.shared-account-closed.v1" }
func (SharedUsageRefunded) EventType() string      { return "usage.shared-refunded.v1" }
func (SharedUsageEnded) EventType() string         { return "usage.shared-ended.v1" }
func (SharedUsageTicked) EventType() string        { return "usage.shared-ticked.v1" }
func (SharedUsageSnapshotTaken) EventType() string { return "usage.shared-balanced.v1" }
func (UsageMonthOpened) EventType() string         { return "usage.month-opened.v1" }
func (UsageCountedIn) EventType() string           { return "usage.counted-in.v1" }
func (UsageLinesStated) EventType() string         { return "usage.lines-stated.v1" }

// DecodePeriodRef returns the period that the data of an event of a shared stream names, whatever else it holds; false if it names none.
func DecodePeriodRef(data []byte) (PeriodRef, bool) {
	var ref PeriodRef
	err := json.Unmarshal(data, &ref)
	return ref, err == nil && ref.Contract != "" && ref.First != (plan.Date{})
}
