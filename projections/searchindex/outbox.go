// Package searchindex tells a search engine outside of the sites that changed, from the rows that the places read model leaves
// in its outbox in the transaction of the change. What was told is deleted only where it did not change meanwhile, so
// nothing is missed and anything may be told twice. Its one constraint: one instance at a time tells.
package searchindex

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// Batch is what an index is told at once.
type Batch struct {
	Generation string       // what the sites are from; those of another fill are to go in the end
	Position   int64        // as far as the index has been told when it has been told this
	Sites      []table.Site // as they stand
	Deleted    []string     // keys of sites that are no more, and accounts with a slash after them
}

// IndexState is how far an index was told, by what it knows itself.
type IndexState struct {
	Generation string
	Position   int64
	Sites      int // of that fill
}

// Index is a search engine outside. What Tell and Seal did can be found when they return.
type Index interface {
	// Open makes the index ready, as a new one where it is not there, and says what it was told before.
	Open(ctx context.Context) (IndexState, error)
	// ApplyBatch fails with ErrRefused where something of the batch cannot be taken, and with ErrLost where the index is not
	// the one that was opened. A batch that failed may have been taken all the same.
	ApplyBatch(ctx context.Context, b Batch) error
	// SaveProgress notes that all of a fill was told up to a position; what is of others is dropped. There are no sites in b.
	SaveProgress(ctx context.Context, b Batch) error
}

var (
	// ErrRefused: the index cannot take what it was told, however often.
	ErrRefused = errors.New("refused")
	// ErrLost: the index is gone, or another one is in its place.
	ErrLost = errors.New("the index is not the one that was filled")
)

// Indexer empties the outbox of the places read model into an index. It is safe for concurrent use.
type Indexer struct {
	Log *slog.Logger // one line when the index cannot be told and when it can again; slog.Default() unless set before use

	index    Index
	registry *sqldb.Registry

	mu              sync.Mutex
	isActive        bool          // this instance tells the index
	progressed      chan struct{} // closed when it told something
	reason          string        // why it cannot, "" when it can or another instance does
	stalledPosition int64         // the oldest position somebody waited for in vain
}

// New is the outbox of the places on a shelf. Nothing happens before Run.
func New(index Index, registry *sqldb.Registry) *Indexer {
	return &Indexer{Log: slog.Default(), index: index, registry: registry, progressed: make(chan struct{})}
}

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 5 * time.Second // pause between two attempts
)

// Run tells the index what is in the outbox of a copy, until ctx ends: it is what the places model has done Beside it.
func (o *Indexer) Run(ctx context.Context, owned projector.OwnedGeneration) {
	o.setActive(true)
	defer o.setActive(false)
	for backoff := minBackoff; ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		d := &session{Indexer: o, owned: owned, generation: generationID(owned.Generation), refused: map[string]retry{}}
		startedAt := time.Now()
		err := d.run(ctx)
		o.recordFailure(ctx, err)
		if time.Since(startedAt) > maxBackoff || errors.Is(err, ErrLost) {
			backoff = minBackoff
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
}

// setActive notes whether this instance setActive the index. If it does not, another does, or none at all.
func (o *Indexer) setActive(isActive bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isActive, o.reason = isActive, ""
}

// generationID names what a copy fills an index with, as no other copy ever did.
func generationID(c sqldb.Generation) string {
	return c.Name + "@" + c.Created.Time().Format("20060102T150405.000000")
}

// recordFailure notes why the index cannot be told.
func (o *Indexer) recordFailure(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason == "" {
		o.Log.Warn("site search cannot be told of changes", "reason", err)
	}
	o.reason = err.Error()
}

// recordRecovery notes that it can.
func (o *Indexer) recordRecovery() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason != "" {
		o.Log.Info("site search is told of changes again")
	}
	o.reason = ""
}

func (o *Indexer) failureReason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}
