// Package directory finds the streets, localities and communes of a vintage in Meilisearch, for an engine that asks there
// instead of the vintage's own index. Each vintage has an index of its own, named after its digest: it is there when it
// is complete and not before, and any number of instances share it. House numbers stay with the vintage.
package directory

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
	form     = "-1-"            // then comes the digest; another form of documents or settings has another number
	draft    = "-draft"         // and this until it is complete
	patience = 2 * time.Second  // with the answer to a question
	moment   = 10 * time.Second // with one that tells how things are
)

// Directory is the Meilisearch that vintages are listed in. It is safe for concurrent use.
type Directory struct {
	// Name is that of the index of who uses which; those of vintages begin so.
	Name string

	client   meilisearch.ServiceManager
	instance string
	now      func() time.Time

	requests, queries atomic.Int64

	mu      sync.Mutex
	claimed map[string]time.Time // by index, when this instance last said that it uses it
}

// New is the directory in a Meilisearch, for an instance with a name of its own.
func New(client meilisearch.ServiceManager, instance string, now func() time.Time) *Directory {
	return &Directory{Name: "lieudit-addresses", client: client, instance: instance, now: now, claimed: map[string]time.Time{}}
}

// Asked is how many requests with questions were sent so far, and how many searches they held.
func (d *Directory) Asked() (requests, searches int64) { return d.requests.Load(), d.queries.Load() }

// ErrIncomplete: the vintage is not listed yet.
var ErrIncomplete = errors.New("the vintage is not listed in Meilisearch yet")

// Ready is nil when questions about a vintage can be answered.
func (d *Directory) Ready(ctx context.Context, v *vintage.Vintage) error {
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	listed, err := d.lists(ctx, v)
	if err == nil && !listed {
		err = ErrIncomplete
	}
	return err
}

// lists says whether a vintage is listed.
func (d *Directory) lists(ctx context.Context, v *vintage.Vintage) (bool, error) {
	_, err := d.client.GetIndexWithContext(ctx, d.nameOf(v))
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, told("look for the index", err)
}

// nameOf is the name of a vintage's index.
func (d *Directory) nameOf(v *vintage.Vintage) string { return d.Name + form + v.Digest() }

// status is the HTTP status that an error of the client came with, 0 for none.
func status(err error) int {
	if e, ok := errors.AsType[*meilisearch.Error](err); ok {
		return e.StatusCode
	}
	return 0
}

// told is an error of the client in a line: what it says of itself repeats whole requests and answers.
func told(what string, err error) error {
	e, ok := errors.AsType[*meilisearch.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return fmt.Errorf("meilisearch: %s: %w", what, err)
	case e.OriginError != nil:
		return fmt.Errorf("meilisearch: %s: %w", what, e.OriginError)
	case e.MeilisearchApiError.Code != "":
		return fmt.Errorf("meilisearch: %s: %s", what, e.MeilisearchApiError.Code)
	}
	return fmt.Errorf("meilisearch: %s: status %d", what, e.StatusCode)
}

// done waits for a task.
func (d *Directory) done(ctx context.Context, what string, task *meilisearch.TaskInfo, err error) error {
	if err != nil {
		return told(what, err)
	}
	const often = 20 * time.Millisecond
	t, err := d.client.WaitForTaskWithContext(ctx, task.TaskUID, often)
	if err == nil && t.Status != meilisearch.TaskStatusSucceeded {
		err = &TaskError{What: what, Code: t.Error.Code, Message: t.Error.Message}
	}
	return told(what, err)
}

// TaskError says that Meilisearch could not do what it was told to.
type TaskError struct{ What, Code, Message string }

func (e *TaskError) Error() string { return strings.TrimSpace(e.Code + ": " + e.Message) }
