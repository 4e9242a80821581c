package event

import "lieudit/schemas/plan"

// UsageOpened begins a period of a contract: the account that pays, or the agency that does for its sub-clients.
// Cap is how many requests may be counted in it, all accounts together.
type UsageOpened struct {
	Contract     string    `json:"contract"`
	First        plan.Date `json:"first"`
	Next         plan.Date `json:"next"` // first day of the period after it
	Cap          int64     `json:"cap"`
	AsOfPosition int64     `json:"asOf"` // position of the account's last event that says so
}

// UsageCapSet gives an account its number of requests in the period. The contract holder's is the contract's.
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

// UsageTicked asks for requests to be admitted. It counts as a whole or not at all, by what stands before it in its
// stream: schemas/ledger says how.
type UsageTicked struct {
	InstanceID   string       `json:"incarnation"` // of the instance that asks
	Sequence     int64        `json:"sequence"`    // grows with all that the incarnation says
	Day          plan.Date    `json:"day"`
	Counts       []UsageCount `json:"counts"`
	AsOfRevision int64        `json:"asOf"` // revision the instance had folded when it asked
	Used         int64        `json:"used"` // what counted for the contract by then
	Cap          int64        `json:"cap"`  // of the contract, by then
}

// UsageCount is requests of one kind.
type UsageCount struct {
	Account  string `json:"account"`
	Key      string `json:"key"`
	Endpoint string `json:"endpoint"` // GET /me
	Requests int64  `json:"requests"`
}

// UsageRefunded takes back requests that were counted and not answered as they should have been.
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
	CapAsOfPosition int64  `json:"asOf"` // of the cap
	Used            int64  `json:"used"`
	Closed          bool   `json:"closed"`
}

// UsageInstanceSequence is the last an incarnation said in the stream.
type UsageInstanceSequence struct {
	InstanceID string `json:"incarnation"`
	Sequence   int64  `json:"sequence"`
}

// UsageClosed ends a period: no later tick or refund counts. Digest is the SHA-256 of its lines, see schemas/ledger.
type UsageClosed struct {
	Total     int64  `json:"total"`
	LineCount int64  `json:"lines"`
	Digest    []byte `json:"digest"`
}

// UsageAdjusted corrects a closed period. The envelope tells by whom and why.
type UsageAdjusted struct {
	Day      plan.Date `json:"day"`
	Account  string    `json:"account"`
	Key      string    `json:"key"`
	Endpoint string    `json:"endpoint"`
	Requests int64     `json:"requests"` // more, or less
}

// InstanceStarted begins the life of one instance of the program as a writer of ticks.
type InstanceStarted struct {
	InstanceID string `json:"incarnation"`
}

// InstanceEnded says that an instance ended in good order: all it had counted was answered.
type InstanceEnded struct {
	InstanceID string `json:"incarnation"`
}

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
