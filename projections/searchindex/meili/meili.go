// Package meili fills the index of sites on a Meilisearch server. It is a searchindex.Index: an Indexer calls Open once and
// learns how far the index was filled, then ApplyBatch for the sites that changed and occasionally SaveProgress.
//
// Its methods return only when the server has finished the task, since applied changes must be searchable. The server runs
// tasks in the order in which it received them.
//
// schemas/siteindex defines a document; its words are encoded by the side that searches them, so the function that makes
// documents is passed in.
package meili

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/eventstore/sqldb"
	"lieudit/projections/searchindex"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/siteindex"
	"lieudit/schemas/table"
)

// NewDocument makes the document of a generation's row.
type NewDocument func(generation string, row table.Site) (siteindex.Document, error)

// Index is the index of sites on a server, to be filled. It is safe for concurrent use.
type Index struct {
	server      meilisearch.ServiceManager
	registry    *sqldb.Registry
	newDocument NewDocument
	identity    identity
}

// New is the index on a server, of the sites whose rows are in a registry's read model. It sends no request before Open.
func New(s meiliclient.Server, registry *sqldb.Registry, newDocument NewDocument) *Index {
	return &Index{server: s.Client(), registry: registry, newDocument: newDocument, identity: identity{name: s.Index}}
}

// identity is the index as Open found it. Open writes it and the other methods read it.
type identity struct {
	mu         sync.Mutex
	name       string    // "" until the log is known
	createdAt  time.Time // distinguishes the index from one that replaced it
	generation string    // of its checkpoint, "" while it has none
}

func (i *identity) state() (createdAt time.Time, generation string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.createdAt, i.generation
}

func (i *identity) setState(createdAt time.Time, generation string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.createdAt, i.generation = createdAt, generation
}

// resolveName returns the known name. If there is none yet, name becomes the known one. With "" it only reads.
func (i *identity) resolveName(name string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name = cmp.Or(i.name, name)
	return i.name
}

// Open makes sure that the index exists with its settings, and returns how far it was filled. An index without a checkpoint,
// such as a new one, was filled by no generation. It fails while the log is empty, since the index is named after the log.
func (x *Index) Open(ctx context.Context) (searchindex.IndexState, error) {
	if err := x.loadName(ctx); err != nil {
		return searchindex.IndexState{}, err
	}
	createdAt, err := x.creationTime(ctx)
	if meiliclient.ErrorCode(err) == "index_not_found" {
		err = x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
			return x.server.CreateIndex(ctx, &meilisearch.IndexConfig{Uid: x.identity.resolveName(""), PrimaryKey: "id"})
		})
		if err == nil {
			createdAt, err = x.creationTime(ctx)
		}
	}
	if err == nil {
		err = x.applySettings(ctx)
	}
	if err != nil {
		return searchindex.IndexState{}, err
	}
	state, err := x.readState(ctx)
	x.identity.setState(createdAt, state.Generation)
	return state, err
}

// loadName finds the index's name: that of the log of the serving generation. A name that is already known, or configured,
// stays.
func (x *Index) loadName(ctx context.Context) error {
	if x.identity.resolveName("") != "" {
		return nil
	}
	log, err := x.registry.LogID(ctx, table.LocationsModel)
	switch {
	case err != nil:
		return fmt.Errorf("index of sites: %w", err)
	case log == "":
		return errors.New("index of sites: the log is empty")
	}
	x.identity.resolveName(siteindex.Name(log))
	return nil
}

// handle is the server's index. The name is known since Open.
func (x *Index) handle() meilisearch.IndexManager { return x.server.Index(x.identity.resolveName("")) }

// creationTime is when the index was created.
func (x *Index) creationTime(ctx context.Context) (time.Time, error) {
	info, err := x.server.GetIndex(ctx, x.identity.resolveName(""))
	if err != nil {
		return time.Time{}, meiliclient.WrapError("index", err)
	}
	return info.CreatedAt, nil
}

// readState reads the checkpoint, and counts the sites of its generation. Without a checkpoint it returns the zero state: the
// sites in the index do not matter then.
func (x *Index) readState(ctx context.Context) (searchindex.IndexState, error) {
	var documents meilisearch.DocumentsResult
	err := x.handle().GetDocuments(ctx, &meilisearch.DocumentsQuery{Filter: siteindex.CheckpointFilter, Limit: 1}, &documents)
	if err != nil || len(documents.Results) == 0 {
		return searchindex.IndexState{}, meiliclient.WrapError("checkpoint", err)
	}
	var checkpoint siteindex.Checkpoint
	if err := documents.Results[0].DecodeInto(&checkpoint); err != nil {
		return searchindex.IndexState{}, meiliclient.WrapError("checkpoint", err)
	}
	filter := siteindex.GenerationFilter("=", checkpoint.Generation)
	err = x.handle().GetDocuments(ctx, &meilisearch.DocumentsQuery{Filter: filter, Limit: 1, Fields: siteindex.DisplayedAttributes[:1]}, &documents)
	sites := int(documents.Total) - 1 // the checkpoint belongs to the generation too
	return searchindex.IndexState{Generation: checkpoint.Generation, Position: checkpoint.Position, Sites: sites}, meiliclient.WrapError("count", err)
}

// ApplyBatch makes the sites of a batch searchable in their present state, and removes the deleted ones. It fails with
// searchindex.ErrRefused and searchindex.ErrLost; a batch that failed may have been applied all the same. At the end, even
// for an empty batch, it checks that the index is the one that was opened.
func (x *Index) ApplyBatch(ctx context.Context, b searchindex.Batch) error {
	createdAt, _ := x.identity.state()
	documents, err := x.newDocuments(b)
	if err != nil {
		return err
	}
	if err := x.deleteSites(ctx, b.Deleted); err != nil {
		return err
	}
	if len(documents) > 0 {
		err := x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
			return index.AddDocuments(ctx, documents, nil)
		})
		if err != nil {
			return err
		}
	}
	return x.checkSameIndex(ctx, createdAt)
}

// newDocuments fails with searchindex.ErrRefused if a row has no document: it will not have one next time either.
func (x *Index) newDocuments(b searchindex.Batch) ([]siteindex.Document, error) {
	documents := make([]siteindex.Document, 0, len(b.Sites))
	for _, s := range b.Sites {
		d, err := x.newDocument(b.Generation, s)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", searchindex.ErrRefused, err)
		}
		documents = append(documents, d)
	}
	return documents, nil
}

// deleteSites deletes sites by their rows' keys, and all sites of an account if the key is the account and a slash.
func (x *Index) deleteSites(ctx context.Context, deleted []string) error {
	var ids, accounts []string
	for _, key := range deleted {
		if account, isAccount := strings.CutSuffix(key, "/"); isAccount {
			accounts = append(accounts, account)
		} else {
			ids = append(ids, siteindex.DocumentID(key))
		}
	}
	if len(accounts) > 0 {
		if err := x.deleteByFilter(ctx, siteindex.AccountsFilter(accounts)); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
		return index.DeleteDocuments(ctx, ids, nil)
	})
}

// deleteByFilter deletes the documents that match a filter, if there are any.
func (x *Index) deleteByFilter(ctx context.Context, filter string) error {
	return x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
		return index.DeleteDocumentsByFilter(ctx, filter, nil)
	})
}

// SaveProgress writes the checkpoint. The first checkpoint of a generation also drops what other generations left, and from
// then on the index answers searches.
func (x *Index) SaveProgress(ctx context.Context, b searchindex.Batch) error {
	createdAt, generation := x.identity.state()
	checkpoint := []siteindex.Checkpoint{siteindex.NewCheckpoint(b.Generation, b.Position)}
	if generation == b.Generation { // then the checkpoint exists: if not, the index was lost, and must not seem complete
		return x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
			return index.UpdateDocuments(ctx, checkpoint, &meilisearch.DocumentOptions{SkipCreation: true})
		})
	}
	if err := x.checkSameIndex(ctx, createdAt); err != nil {
		return err
	}
	err := x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
		return index.AddDocuments(ctx, checkpoint, nil)
	})
	if err != nil {
		return err
	}
	if err := x.deleteByFilter(ctx, siteindex.GenerationFilter("!=", b.Generation)); err != nil {
		return err
	}
	x.identity.setState(createdAt, b.Generation)
	return x.checkSameIndex(ctx, createdAt)
}

// checkSameIndex is nil if the index is the one that was opened. Adding a document to a lost index would recreate it, without
// its settings and contents.
func (x *Index) checkSameIndex(ctx context.Context, createdAt time.Time) error {
	current, err := x.creationTime(ctx)
	if meiliclient.ErrorCode(err) == "index_not_found" || err == nil && !current.Equal(createdAt) {
		return searchindex.ErrLost
	}
	return err
}
