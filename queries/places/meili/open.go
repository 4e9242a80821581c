package meili

import (
	"context"
	"errors"
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
		err = x.done(ctx)(x.server.CreateIndexWithContext(ctx, &meilisearch.IndexConfig{Uid: x.name, PrimaryKey: "id"}))
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
	info, err := x.server.GetIndexWithContext(ctx, x.name)
	if err != nil {
		return time.Time{}, failed("index", err)
	}
	return info.CreatedAt, nil
}

// marked reads the mark, and counts what is of its fill.
func (x *Index) marked(ctx context.Context) (Told, error) {
	var documents meilisearch.DocumentsResult
	err := x.index.GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Filter: markFilter, Limit: 1}, &documents)
	if err != nil || len(documents.Results) == 0 {
		return Told{}, failed("mark", err)
	}
	var m mark
	if err := documents.Results[0].DecodeInto(&m); err != nil {
		return Told{}, failed("mark", err)
	}
	err = x.index.GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Filter: fillFilter("=", m.Fill), Limit: 1, Fields: shown[:1]}, &documents)
	return Told{m.Fill, m.Position, int(documents.Total) - 1}, failed("count", err)
}

func fillFilter(operator, fill string) string {
	return "copie " + operator + " " + quoted(digest(fill))
}

func markOf(fill string, position int64) mark {
	return mark{markID, true, digest(fill), fill, position}
}
