package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/address/vintage"
)

const (
	batched = 10_000 // documents that are sent at a time
	ahead   = 1      // batches that are sent before the one before is done; whoever else has tasks waits that long
)

// settings are those of every index. What comes first in an answer is settled by the engine: here it is enough that the
// likeliest are among the first.
func settings() *meilisearch.Settings {
	return &meilisearch.Settings{
		SearchableAttributes: []string{"nom", "lieux_dits", "communes", "anciennes_communes"},
		FilterableAttributes: []string{"type", "rang", "codes_postaux", "departement"},
		RankingRules:         []string{"words", "typo", "attribute", "exactness", "rang:asc"},
		TypoTolerance: &meilisearch.TypoTolerance{Enabled: true, MinWordSizeForTypos: meilisearch.MinWordSizeForTypos{OneTypo: 4, TwoTypos: 8},
			DisableOnWords: []string{}, DisableOnAttributes: []string{}, DisableOnNumbers: true},
		ProximityPrecision: meilisearch.ByAttribute, // no rule looks at it
		// A search that is cut off leaves out what fits: the patience of who asked ends first.
		SearchCutoffMs: 5 * patience.Milliseconds(),
	}
}

// Fill lists a vintage, unless it is listed. Instances that do so at once write the same; one that is interrupted leaves
// a draft that is written over, or removed in time. Progress, which may be nil, is told of documents.
func (d *Directory) Fill(ctx context.Context, v *vintage.Vintage, progress func(done, total int)) error {
	if err := d.claim(ctx, d.nameOf(v)); err != nil {
		return err
	}
	if listed, err := d.lists(ctx, v); err != nil || listed {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	err := d.write(ctx, v, progress)
	if err == nil {
		err = d.publish(ctx, d.nameOf(v))
	}
	if err == nil {
		return nil
	}
	if listed, _ := d.lists(ctx, v); listed { // another instance came first, and took the draft
		return d.remove(ctx, d.nameOf(v)+draft)
	}
	return fmt.Errorf("list the vintage: %w", err)
}

// write writes all documents into a draft.
func (d *Directory) write(ctx context.Context, v *vintage.Vintage, progress func(done, total int)) error {
	index, err := d.furnished(ctx, d.nameOf(v)+draft)
	if err != nil {
		return err
	}
	var sent []*meilisearch.TaskInfo
	wait := func(left int) error {
		for ; len(sent) > left; sent = sent[1:] {
			if err := d.done(ctx, "add documents", sent[0], nil); err != nil {
				return err
			}
		}
		return d.claim(ctx, d.nameOf(v))
	}
	count := 0
	for batch, n := range batches(v) {
		task, err := index.AddDocumentsNdjsonWithContext(ctx, batch, nil)
		if err != nil {
			return told("add documents", err)
		}
		sent, count = append(sent, task), count+n
		if err := wait(ahead); err != nil {
			return err
		}
		progress(count, v.Communes+v.Streets+v.Localities)
	}
	if err := wait(0); err != nil {
		return err
	}
	return d.counted(ctx, index, count)
}

// furnished is an index with its settings, which may hold documents of an interrupted fill.
func (d *Directory) furnished(ctx context.Context, name string) (meilisearch.IndexManager, error) {
	made, err := d.client.CreateIndexWithContext(ctx, &meilisearch.IndexConfig{Uid: name, PrimaryKey: "id"})
	if err = d.done(ctx, "make the index", made, err); err != nil && !is(err, "index_already_exists") {
		return nil, err
	}
	index := d.client.Index(name)
	set, err := index.UpdateSettingsWithContext(ctx, settings())
	if err := d.done(ctx, "set the index up", set, err); err != nil {
		return nil, err
	}
	set, err = index.UpdateFacetSearchWithContext(ctx, false) // nobody searches among the values of filters
	return index, d.done(ctx, "set the index up", set, err)
}

// counted is an error when documents are missing.
func (d *Directory) counted(ctx context.Context, index meilisearch.IndexManager, want int) error {
	stats, err := index.GetStatsWithContext(ctx, nil)
	if err == nil && stats.NumberOfDocuments != int64(want) {
		err = fmt.Errorf("%d documents of %d are there", stats.NumberOfDocuments, want)
	}
	return told("count documents", err)
}

// batches are the documents of a vintage, a line each, so many at a time.
func batches(v *vintage.Vintage) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		var lines bytes.Buffer
		n, out := 0, json.NewEncoder(&lines)
		for e := range entries(v) {
			if err := out.Encode(e); err != nil {
				continue // texts and numbers are always encoded
			}
			if n++; n == batched {
				if !yield(lines.Bytes(), n) {
					return
				}
				n = 0
				lines.Reset()
			}
		}
		if n > 0 {
			yield(lines.Bytes(), n)
		}
	}
}

// publish gives a complete draft its name, which must be free.
func (d *Directory) publish(ctx context.Context, name string) error {
	renamed, err := d.client.SwapIndexesWithContext(ctx, []*meilisearch.SwapIndexesParams{{Indexes: []string{name + draft, name}, Rename: true}})
	return d.done(ctx, "name the index", renamed, err)
}

// remove deletes an index, which need not be there.
func (d *Directory) remove(ctx context.Context, name string) error {
	gone, err := d.client.DeleteIndexWithContext(ctx, name)
	if err = d.done(ctx, "delete an index", gone, err); is(err, "index_not_found") {
		return nil
	}
	return err
}

// is says whether a task failed for a reason.
func is(err error, code string) bool {
	e, ok := errors.AsType[*TaskError](err)
	return ok && e.Code == code
}
