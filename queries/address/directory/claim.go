package directory

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/address/vintage"
)

const (
	claimed = 10 * time.Minute // how often that is said
	lapsed  = 30 * time.Minute // how long it holds
)

// claim is the word of an instance that it uses an index.
type claim struct {
	ID    string `json:"id"` // the instance and the index
	Index string `json:"index"`
	Seen  int64  `json:"vu"` // Unix seconds
}

// claim says that this instance uses an index, unless it said so of late.
func (d *Directory) claim(ctx context.Context, index string) error {
	now := d.now()
	d.mu.Lock()
	fresh := now.Sub(d.claimed[index]) < claimed
	d.mu.Unlock()
	if fresh {
		return nil
	}
	key := "id"
	said, err := d.client.Index(d.Name).AddDocumentsWithContext(ctx,
		[]claim{{ID: d.claimID(index), Index: index, Seen: now.Unix()}}, &meilisearch.DocumentOptions{PrimaryKey: &key})
	if err := d.done(ctx, "claim an index", said, err); err != nil {
		return err
	}
	d.mu.Lock()
	d.claimed[index] = now
	d.mu.Unlock()
	return nil
}

// Prune removes the indexes of vintages, complete or not, that no instance has used of late.
func (d *Directory) Prune(ctx context.Context) error {
	used, err := d.used(ctx)
	if err != nil {
		return err
	}
	all, err := d.client.ListIndexesWithContext(ctx, &meilisearch.IndexesQuery{Limit: 1000})
	if err != nil {
		return told("list indexes", err)
	}
	for _, index := range all.Results {
		if strings.HasPrefix(index.UID, d.Name+form) && !used[strings.TrimSuffix(index.UID, draft)] {
			if err := d.remove(ctx, index.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// used are the indexes that instances said they use, and did not long ago.
func (d *Directory) used(ctx context.Context) (map[string]bool, error) {
	var kept meilisearch.DocumentsResult
	err := d.client.Index(d.Name).GetDocumentsWithContext(ctx, &meilisearch.DocumentsQuery{Limit: 1000}, &kept)
	if err != nil && status(err) != http.StatusNotFound {
		return nil, told("read claims", err)
	}
	used, old := map[string]bool{}, []string(nil)
	for _, hit := range kept.Results {
		var c claim
		if err := hit.DecodeInto(&c); err != nil {
			return nil, told("read claims", err)
		}
		if d.now().Sub(time.Unix(c.Seen, 0)) < lapsed {
			used[c.Index] = true
		} else {
			old = append(old, c.ID)
		}
	}
	return used, d.unclaim(ctx, old...)
}

// Release says that this instance no longer uses the index of a vintage.
func (d *Directory) Release(ctx context.Context, digest string) error {
	d.mu.Lock()
	delete(d.claimed, d.Name+form+digest)
	d.mu.Unlock()
	return d.unclaim(ctx, d.claimID(d.Name+form+digest))
}

func (d *Directory) claimID(index string) string {
	return d.instance + "_" + strings.TrimPrefix(index, d.Name+form)
}

func (d *Directory) unclaim(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	gone, err := d.client.Index(d.Name).DeleteDocumentsWithContext(ctx, ids, nil)
	if err = d.done(ctx, "give claims up", gone, err); is(err, "index_not_found") {
		return nil
	}
	return err
}

// Forget removes the index of a vintage, whoever uses it.
func (d *Directory) Forget(ctx context.Context, v *vintage.Vintage) error {
	return errors.Join(d.Release(ctx, v.Digest()), d.remove(ctx, d.nameOf(v)), d.remove(ctx, d.nameOf(v)+draft))
}
