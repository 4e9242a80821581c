package event

import "lieudit/schemas/plan"

// UsageOpened begins a period of a contract. The contract is the account that pays: for itself or, as an agency, for its
// sub-clients. Cap is how many requests may be counted in the period for all its accounts together.
type UsageOpened struct {
	Contract     string    `json:"contract"`
	First        plan.Date `json:"first"`
	Next         plan.Date `json:"next"` // first day of the period after it
	Cap          int64     `json:"cap"`
	AsOfPosition int64     `json:"asOf"` // log position of the account's event that the cap follows from
}

// UsageCapSet sets how many requests an account may have counted in the period. For the contract's own account it sets the
// cap of the contract.
type UsageCapSet struct {
	Account      string `json:"account"`
	Cap          int64  `json:"cap"`
	AsOfPosition int64  `json:"asOf"`
}

// UsageKeyRevoked ends the counting of a key: no later tick with it counts.
type UsageKeyRevoked struct {
	Account string `json:"account"`
	Key     string `json:"key"`
}

// UsageAccountClosed ends the counting of an account: no later tick with it counts.
type UsageAccountClosed struct {
	Account string `json:"account"`
}

// UsageTicked proposes that requests are counted. It counts as a whole or not at all, which the events before it in its stream
// decide by the rules of schemas/usagefold.
type UsageTicked struct {
	InstanceID   string       `json:"incarnation"` // of the instance that appended it
	Sequence     int64        `json:"sequence"`    // grows with every tick and refund of the instance
	Day          plan.Date    `json:"day"`
	Counts       []UsageCount `json:"counts"`
	AsOfRevision int64        `json:"asOf"` // revision up to which the instance had folded the stream
	Used         int64        `json:"used"` // requests counted for the contract by then
	Cap          int64        `json:"cap"`  // of the contract, by then
}

// UsageCount is a number of requests of one account with one key to one endpoint.
type UsageCount struct {
	Account  string `json:"account"`
	Key      string `json:"key"`
	Endpoint string `json:"endpoint"` // GET /me
	Requests int64  `json:"requests"`
}

// UsageRefunded takes back requests that were counted but not answered properly.
type UsageRefunded struct {
	InstanceID string       `json:"incarnation"`
	Sequence   int64        `json:"sequence"`
	Day        plan.Date    `json:"day"` // on which they were counted
	Counts     []UsageCount `json:"counts"`
}

// UsageSnapshotTaken repeats the state of the stream as of a revision, so that a reader can begin there.
type UsageSnapshotTaken struct {
	AsOfRevision int64                   `json:"asOf"`
	Contract     string                  `json:"contract"`
	First        plan.Date               `json:"first"`
	Next         plan.Date               `json:"next"`
	Used         int64                   `json:"used"`
	Accounts     []UsageAccountState     `json:"accounts"`
	RevokedKeys  []string                `json:"revoked"` // keys
	Sequences    []UsageInstanceSequence `json:"said"`
}

// UsageAccountState is the state of one account of the contract.
type UsageAccountState struct {
	Account         string `json:"account"`
	Cap             int64  `json:"cap"`
	CapAsOfPosition int64  `json:"asOf"` // UsageCapSet.AsOfPosition of the cap
	Used            int64  `json:"used"`
	Closed          bool   `json:"closed"`
}

// UsageInstanceSequence is the last sequence of an instance in the stream.
type UsageInstanceSequence struct {
	InstanceID string `json:"incarnation"`
	Sequence   int64  `json:"sequence"`
}

// UsageClosed ends a period: no later tick or refund counts. Digest is usagefold.Lines.Digest of its lines.
type UsageClosed struct {
	Total     int64  `json:"total"`
	LineCount int64  `json:"lines"`
	Digest    []byte `json:"digest"`
}

// UsageAdjusted corrects a closed period. The envelope names who did it and why.
type UsageAdjusted struct {
	Day      plan.Date `json:"day"`
	Account  string    `json:"account"`
	Key      string    `json:"key"`
	Endpoint string    `json:"endpoint"`
	Requests int64     `json:"requests"` // added; negative when taken away
}

// InstanceStarted records that an instance of the program may write ticks from now on. An instance is one run of the program;
// its wire name is incarnation.
type InstanceStarted struct {
	InstanceID string `json:"incarnation"`
}

// InstanceEnded records that an instance ended normally: everything that it had counted was answered.
type InstanceEnded struct {
	InstanceID string `json:"incarnation"`
}

// SealedFor is the account whose line is corrected. The stream is that of the contract's period.
func (e UsageAdjusted) SealedFor() string { return e.Account }

// EventType is the wire name.
func (UsageOpened) EventType() string        { return "usage.opened.v1" }
func (UsageCapSet) EventType() string        { return "usage.cap-set.v1" }
func (UsageKeyRevoked) EventType() string    { return "usage.key-revoked.v1" }
func (UsageAccountClosed) EventType() string { return "usage.account-closed.v1" }
func (UsageTicked) EventType() string        { return "usage.ticked.v1" }
func (UsageRefunded) EventType() string      { return "usage.refunded.v1" }
func (UsageSnapshotTaken) EventType() string { return "usage.balanced.v1" }
func (UsageClosed) EventType() string        { return "usage.closed.v1" }
func (UsageAdjusted) EventType() string      { return "usage.adjusted.v1" }
func (InstanceStarted) EventType() string    { return "incarnation.started.v1" }
func (InstanceEnded) EventType() string      { return "incarnation.ended.v1" }
