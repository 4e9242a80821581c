package meili

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// Batch is what the index is told at once.
type Batch struct {
	Generation string       // what the sites are from
	Position   int64        // as far as the index has been told, with this batch
	Sites      []table.Site // as they stand
	Deleted    []string     // keys of sites that are no more, and accounts with a slash after them
}

// IndexState is how far the index was told.
type IndexState struct {
	Generation string
	Position   int64
	Sites      int // of that fill
}

var (
	// ErrRejected: something of the batch cannot be taken, however often it is told.
	ErrRejected = errors.New("refused")
	// ErrIndexReplaced: the index is not the one that was opened.
	ErrIndexReplaced = errors.New("the index is not the one that was filled")
)

// indexIdentity is the index as Open found it.
type indexIdentity struct {
	mu         sync.Mutex
	createdAt  time.Time // when it was created: another one of its name was created at another time
	generation string    // what it was sealed with, "" before
	name       string    // "" until it is known
}

func (o *indexIdentity) state() (createdAt time.Time, generation string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.createdAt, o.generation
}

func (o *indexIdentity) setState(createdAt time.Time, generation string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.createdAt, o.generation = createdAt, generation
}

// resolveName is the name that is known, from now on this one if none was.
func (o *indexIdentity) resolveName(name string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name == "" {
		o.name = name
	}
	return o.name
}

// checkpointDocument is the document that says what the index was sealed with and how far it was told since.
type checkpointDocument struct {
	ID             string `json:"id"`
	IsCheckpoint   bool   `json:"marque"`
	GenerationHash string `json:"copie"`
	Generation     string `json:"de"`
	Position       int64  `json:"position"`
}

const (
	checkpointID     = "marque"
	checkpointFilter = "marque = true"
)

// Open makes sure of the index, as a new one where it is not there, and says what it was told before.
func (x *Index) Open(ctx context.Context) (IndexState, error) {
	createdAt, err := x.creationTime(ctx)
	if errorCode(err) == "index_not_found" {
		err = x.awaitTask(ctx)(x.server.CreateIndexWithContext(ctx, &meilisearch.IndexConfig{Uid: x.identity.resolveName(""), PrimaryKey: "id"}))
		if err == nil {
			createdAt, err = x.creationTime(ctx)
		}
	}
	if err == nil {
		err = x.applySettings(ctx)
	}
	if err != nil {
		return IndexState{}, err
	}
	state, err := x.readIndexState(ctx)
	x.identity.setState(createdAt, state.Generation)
	return state, err
}

// creationTime is when the index was created.
func (x *Index) creationTime(ctx context.Context) (time.Time, error) {
	name, err := x.Name(ctx)
	if err != nil {
		return time.Time{}, err
	}
	info, err := x.server.GetIndexWithContext(ctx, name)
	if err != nil {
		return time.Time{}, wrapError("index", err)
	}
	return info.CreatedAt, nil
}

// errLogEmpty: nothing was ever written, so there is nothing an index could be of.
var errLogEmpty = errors.New("the log is empty")

// Name is the name of the index. The log is in it, so that those of two logs on one server leave each other alone.
func (x *Index) Name(ctx context.Context) (string, error) {
	if name := x.identity.resolveName(""); name != "" {
		return name, nil
	}
	var log string
	err := x.registry.Read(ctx, table.LocationsModel, func(db *sqldb.DB) error {
		return db.QueryRow(ctx, "select log from checkpoint").Scan(&log)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("index of sites: %w", err)
	case log == "":
		return "", errLogEmpty
	}
	return x.identity.resolveName(indexFamily + "-" + log), nil
}

// handle is the handle of the name, which is known since it was opened.
func (x *Index) handle() meilisearch.IndexManager { return x.server.Index(x.identity.resolveName("")) }

// readIndexState reads the mark, and counts what is of its fill.
func (x *Index) readIndexState(ctx context.Context) (IndexState, error) {
	var documents meilisearch.DocumentsResult
	err := x.handle().GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Filter: checkpointFilter, Limit: 1}, &documents)
	if err != nil || len(documents.Results) == 0 {
		return IndexState{}, wrapError("mark", err)
	}
	var checkpoint checkpointDocument
	if err := documents.Results[0].DecodeInto(&checkpoint); err != nil {
		return IndexState{}, wrapError("mark", err)
	}
	err = x.handle().GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Filter: generationFilter("=", checkpoint.Generation), Limit: 1, Fields: displayedAttributes[:1]}, &documents)
	return IndexState{checkpoint.Generation, checkpoint.Position, int(documents.Total) - 1}, wrapError("count", err)
}

func generationFilter(operator, generation string) string {
	return "copie " + operator + " " + quote(hashText(generation))
}
