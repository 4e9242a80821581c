package meili

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/schemas/table"
)

// Batch is what the index is told at once.
type Batch struct {
	Fill     string       // what the sites are from
	Position int64        // as far as the index has been told, with this batch
	Sites    []table.Site // as they stand
	Gone     []string     // keys of sites that are no more, and accounts with a slash after them
}

// Told is how far the index was told.
type Told struct {
	Fill     string
	Position int64
	Sites    int // of that fill
}

var (
	// ErrRefused: something of the batch cannot be taken, however often it is told.
	ErrRefused = errors.New("refused")
	// ErrLost: the index is not the one that was opened.
	ErrLost = errors.New("the index is not the one that was filled")
)

// opened is the index as Open found it.
type opened struct {
	mu   sync.Mutex
	made time.Time // when it was created: another one of its name was created at another time
	fill string    // what it was sealed with, "" before
	name string    // "" until it is known
}

func (o *opened) now() (made time.Time, fill string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made, o.fill
}

func (o *opened) set(made time.Time, fill string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made, o.fill = made, fill
}

// named is the name that is known, from now on this one if none was.
func (o *opened) named(name string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name == "" {
		o.name = name
	}
	return o.name
}

// mark is the document that says what the index was sealed with and how far it was told since.
type mark struct {
	ID       string `json:"id"`
	Mark     bool   `json:"marque"`
	Of       string `json:"copie"`
	Fill     string `json:"de"`
	Position int64  `json:"position"`
}

const (
	markID     = "marque"
	markFilter = "marque = true"
)

// Open makes sure of the index, as a new one where it is not there, and says what it was told before.
func (x *Index) Open(ctx context.Context) (Told, error) {
	made, err := x.made(ctx)
	if codeOf(err) == "index_not_found" {
		err = x.done(ctx)(x.server.CreateIndexWithContext(ctx, &meilisearch.IndexConfig{Uid: x.opened.named(""), PrimaryKey: "id"}))
		if err == nil {
			made, err = x.made(ctx)
		}
	}
	if err == nil {
		err = x.furnish(ctx)
	}
	if err != nil {
		return Told{}, err
	}
	told, err := x.marked(ctx)
	x.opened.set(made, told.Fill)
	return told, err
}

// made is when the index was created.
func (x *Index) made(ctx context.Context) (time.Time, error) {
	name, err := x.Name(ctx)
	if err != nil {
		return time.Time{}, err
	}
	info, err := x.server.GetIndexWithContext(ctx, name)
	if err != nil {
		return time.Time{}, failed("index", err)
	}
	return info.CreatedAt, nil
}

// errEmpty: nothing was ever written, so there is nothing an index could be of.
var errEmpty = errors.New("the log is empty")

// Name is the name of the index. The log is in it, so that those of two logs on one server leave each other alone.
func (x *Index) Name(ctx context.Context) (string, error) {
	if name := x.opened.named(""); name != "" {
		return name, nil
	}
	var log string
	err := x.shelf.Read(ctx, table.Places, func(db *table.DB) error {
		return db.QueryRow(ctx, "select log from checkpoint").Scan(&log)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("index of sites: %w", err)
	case log == "":
		return "", errEmpty
	}
	return x.opened.named(family + "-" + log), nil
}

// index is the index of the name, which is known since it was opened.
func (x *Index) index() meilisearch.IndexManager { return x.server.Index(x.opened.named("")) }

// marked reads the mark, and counts what is of its fill.
func (x *Index) marked(ctx context.Context) (Told, error) {
	var documents meilisearch.DocumentsResult
	err := x.index().GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Filter: markFilter, Limit: 1}, &documents)
	if err != nil || len(documents.Results) == 0 {
		return Told{}, failed("mark", err)
	}
	var m mark
	if err := documents.Results[0].DecodeInto(&m); err != nil {
		return Told{}, failed("mark", err)
	}
	err = x.index().GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Filter: fillFilter("=", m.Fill), Limit: 1, Fields: shown[:1]}, &documents)
	return Told{m.Fill, m.Position, int(documents.Total) - 1}, failed("count", err)
}

func fillFilter(operator, fill string) string {
	return "copie " + operator + " " + quoted(digest(fill))
}
