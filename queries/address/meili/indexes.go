// Package meili finds the streets, localities and communes of a vintage on a Meilisearch server, as a source of
// candidates (address.Source) instead of the vintage's own index. An index holds exactly one
// vintage and exists only when it is complete. House numbers stay in the vintage's file.
//
//	vintage.Vintage ── Indexes.Fill ──► document… ──► draft index ── rename ──► index, named after the vintage's digest
//	address.CandidateQuery… ── Index.Find ──► one multi-search request ──► hits ──► address.CandidateResult… (ordinals of the vintage)
//
// Any number of instances share a server. Each keeps a lease on the indexes that it uses, and Prune deletes those
// without a lease.
package meili

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/address/vintage"
)

const (
	formatInfix   = "-1-"            // precedes the digest; the number changes with the format of documents or settings
	draftSuffix   = "-draft"         // follows the digest until the index is complete
	searchTimeout = 2 * time.Second  // for the candidates of a query
	checkTimeout  = 10 * time.Second // for a readiness check
)

// Indexes is the indexes of vintages on one Meilisearch server. It is safe for concurrent use.
type Indexes struct {
	// Name names the index of leases. The names of the vintages' indexes begin with it.
	Name string

	client   meilisearch.ServiceManager
	instance string
	elapsed  func() time.Time // says when a lease of this instance must be renewed
	wall     func() time.Time // stamps leases, which other instances compare with their wall clocks

	requests, searches atomic.Int64

	mu       sync.Mutex
	leasedAt map[string]time.Time // when this instance last wrote its lease, by index and by elapsed
}

// New returns the indexes on a server. The name of the instance must be unique. elapsed is a clock of elapsed time, and
// wall is the wall clock.
func New(client meilisearch.ServiceManager, instance string, elapsed, wall func() time.Time) *Indexes {
	return &Indexes{
		Name: "lieudit-addresses", client: client, instance: instance, elapsed: elapsed, wall: wall, leasedAt: map[string]time.Time{},
	}
}

// RequestCounts counts the search requests sent so far and the searches that they held.
func (d *Indexes) RequestCounts() (requests, searches int64) {
	return d.requests.Load(), d.searches.Load()
}

// ErrIncomplete says that the server has no complete index of the vintage yet.
var ErrIncomplete = errors.New("the vintage is not listed in Meilisearch yet")

// Ready returns nil when the server can answer queries about a vintage.
func (d *Indexes) Ready(ctx context.Context, v *vintage.Vintage) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	isFilled, err := d.isFilled(ctx, v)
	if err == nil && !isFilled {
		err = ErrIncomplete
	}
	return err
}

// isFilled reports whether the server has the complete index of a vintage.
func (d *Indexes) isFilled(ctx context.Context, v *vintage.Vintage) (bool, error) {
	_, err := d.client.GetIndex(ctx, d.indexName(v))
	if httpStatus(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, wrapError("look for the index", err)
}

// indexName names the index of a vintage.
func (d *Indexes) indexName(v *vintage.Vintage) string { return d.Name + formatInfix + v.Digest() }

// httpStatus is the HTTP status that an error of the client carries, or 0.
func httpStatus(err error) int {
	if e, ok := errors.AsType[*meilisearch.Error](err); ok {
		return e.StatusCode
	}
	return 0
}

// wrapError shortens an error of the client to one line. The client's own text repeats whole requests and responses.
func wrapError(operation string, err error) error {
	e, ok := errors.AsType[*meilisearch.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return fmt.Errorf("meilisearch: %s: %w", operation, err)
	case e.OriginError != nil:
		return fmt.Errorf("meilisearch: %s: %w", operation, e.OriginError)
	case e.APIError.Code != "":
		return fmt.Errorf("meilisearch: %s: %s", operation, e.APIError.Code)
	}
	return fmt.Errorf("meilisearch: %s: status %d", operation, e.StatusCode)
}

// waitForTask waits until the server has run a task. It takes the result of the call that created the task.
func (d *Indexes) waitForTask(ctx context.Context, operation string, task *meilisearch.TaskInfo, err error) error {
	if err != nil {
		return wrapError(operation, err)
	}
	const interval = 20 * time.Millisecond
	t, err := d.client.WaitForTask(ctx, task.TaskUID, interval)
	if err == nil && t.Status != meilisearch.TaskStatusSucceeded {
		err = &TaskError{Operation: operation, Code: string(t.Error.Code), Message: t.Error.Message}
	}
	return wrapError(operation, err)
}

// TaskError says that Meilisearch ran a task and failed.
type TaskError struct{ Operation, Code, Message string }

func (e *TaskError) Error() string { return strings.TrimSpace(e.Code + ": " + e.Message) }

const (
	leaseRenewal  = 10 * time.Minute // age at which an instance renews a lease
	leaseDuration = 30 * time.Minute // age at which a lease expires
)

// lease is the document by which an instance declares that it uses an index.
type lease struct {
	ID    string `json:"id"` // instance and digest
	Index string `json:"index"`
	Seen  int64  `json:"vu"` // Unix seconds
}

// renewLease writes this instance's lease on an index, unless it did so less than leaseRenewal ago.
func (d *Indexes) renewLease(ctx context.Context, index string) error {
	now := d.elapsed()
	d.mu.Lock()
	isFresh := now.Sub(d.leasedAt[index]) < leaseRenewal
	d.mu.Unlock()
	if isFresh {
		return nil
	}
	if err := d.writeLeases(ctx, lease{ID: d.leaseID(index), Index: index, Seen: d.wall().Unix()}); err != nil {
		return err
	}
	d.mu.Lock()
	d.leasedAt[index] = now
	d.mu.Unlock()
	return nil
}

// writeLeases writes leases, each over the one with its id. It does nothing without leases.
func (d *Indexes) writeLeases(ctx context.Context, leases ...lease) error {
	if len(leases) == 0 {
		return nil
	}
	key := "id"
	task, err := d.client.Index(d.Name).AddDocuments(ctx, leases, &meilisearch.DocumentOptions{PrimaryKey: &key})
	return d.waitForTask(ctx, "write a lease", task, err)
}

// Prune deletes the indexes of vintages, complete or drafts, on which no instance has a valid lease.
func (d *Indexes) Prune(ctx context.Context) error {
	leased, err := d.leasedIndexes(ctx)
	if err != nil {
		return err
	}
	all, err := d.client.ListIndexes(ctx, &meilisearch.IndexesQuery{Limit: 1000})
	if err != nil {
		return wrapError("list indexes", err)
	}
	for _, index := range all.Results {
		if strings.HasPrefix(index.UID, d.Name+formatInfix) && !leased[strings.TrimSuffix(index.UID, draftSuffix)] {
			if err := d.deleteIndex(ctx, index.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// leasedIndexes is the set of indexes with a valid lease. It deletes the expired leases. A lease that was written far in the future,
// by a wall clock that has been set back since, counts as written now: otherwise the lease of a dead instance would last as long.
func (d *Indexes) leasedIndexes(ctx context.Context) (map[string]bool, error) {
	var stored meilisearch.DocumentsResult
	err := d.client.Index(d.Name).GetDocuments(ctx, &meilisearch.DocumentsQuery{Limit: 1000}, &stored)
	if err != nil && httpStatus(err) != http.StatusNotFound {
		return nil, wrapError("read the leases", err)
	}
	leased, expired, future, now := map[string]bool{}, []string(nil), []lease(nil), d.wall()
	for _, hit := range stored.Results {
		var l lease
		if err := hit.DecodeInto(&l); err != nil {
			return nil, wrapError("read the leases", err)
		}
		age := now.Sub(time.Unix(l.Seen, 0))
		if age >= leaseDuration {
			expired = append(expired, l.ID)
			continue
		}
		leased[l.Index] = true
		if age < -leaseDuration {
			future = append(future, lease{ID: l.ID, Index: l.Index, Seen: now.Unix()})
		}
	}
	return leased, errors.Join(d.writeLeases(ctx, future...), d.deleteLeases(ctx, expired...))
}

// Release ends this instance's lease on the index of a vintage.
func (d *Indexes) Release(ctx context.Context, digest string) error {
	d.mu.Lock()
	delete(d.leasedAt, d.Name+formatInfix+digest)
	d.mu.Unlock()
	return d.deleteLeases(ctx, d.leaseID(d.Name+formatInfix+digest))
}

// leaseID is the id of this instance's lease on an index.
func (d *Indexes) leaseID(index string) string {
	return d.instance + "_" + strings.TrimPrefix(index, d.Name+formatInfix)
}

// deleteLeases deletes leases. It is not an error when no lease was ever written.
func (d *Indexes) deleteLeases(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	task, err := d.client.Index(d.Name).DeleteDocuments(ctx, ids, nil)
	if err = d.waitForTask(ctx, "delete leases", task, err); isTaskError(err, "index_not_found") {
		return nil
	}
	return err
}

// Delete deletes the index of a vintage, whichever instances use it.
func (d *Indexes) Delete(ctx context.Context, v *vintage.Vintage) error {
	return errors.Join(d.Release(ctx, v.Digest()), d.deleteIndex(ctx, d.indexName(v)), d.deleteIndex(ctx, d.indexName(v)+draftSuffix))
}
