package meili

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

const (
	batchSize         = 10_000 // documents in one request
	maxPendingBatches = 1      // batches that wait on the server; the tasks of other clients wait behind them
)

// settings are those of every index. The engine ranks the candidates itself, so the server only has to put the
// likeliest among the first.
func settings() *meilisearch.Settings {
	return &meilisearch.Settings{
		SearchableAttributes: []string{"nom", "lieux_dits", "communes", "anciennes_communes"},
		FilterableAttributes: []string{"type", "rang", "codes_postaux", "departement"},
		RankingRules:         []string{"words", "typo", "attribute", "exactness", "rang:asc"},
		TypoTolerance: &meilisearch.TypoTolerance{Enabled: true, MinWordSizeForTypos: meilisearch.MinWordSizeForTypos{OneTypo: 4, TwoTypos: 8},
			DisableOnWords: []string{}, DisableOnAttributes: []string{}, DisableOnNumbers: true},
		ProximityPrecision: meilisearch.ByAttribute, // no ranking rule needs word positions
		// A search that the server cuts off misses candidates, so the client's timeout must end first.
		SearchCutoffMs: 5 * searchTimeout.Milliseconds(),
	}
}

// Fill writes the index of a vintage unless the server has it. Instances that fill it at once write the same documents.
// An interrupted Fill leaves a draft, which the next one overwrites or Prune deletes. Progress may be nil; it counts
// documents.
func (d *Indexes) Fill(ctx context.Context, v *vintage.Vintage, progress func(done, total int)) error {
	if err := d.renewLease(ctx, d.indexName(v)); err != nil {
		return err
	}
	if isFilled, err := d.isFilled(ctx, v); err != nil || isFilled {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	err := d.writeDraft(ctx, v, progress)
	if err == nil {
		err = d.publishDraft(ctx, d.indexName(v))
	}
	if err == nil {
		return nil
	}
	if isFilled, _ := d.isFilled(ctx, v); isFilled { // another instance published first, and our draft with it
		return d.deleteIndex(ctx, d.indexName(v)+draftSuffix)
	}
	return fmt.Errorf("list the vintage: %w", err)
}

// writeDraft writes all documents into the draft of an index. It renews the lease after each batch.
func (d *Indexes) writeDraft(ctx context.Context, v *vintage.Vintage, progress func(done, total int)) error {
	index, err := d.createIndex(ctx, d.indexName(v)+draftSuffix)
	if err != nil {
		return err
	}
	var sent []*meilisearch.TaskInfo
	wait := func(left int) error {
		for ; len(sent) > left; sent = sent[1:] {
			if err := d.waitForTask(ctx, "add documents", sent[0], nil); err != nil {
				return err
			}
		}
		return d.renewLease(ctx, d.indexName(v))
	}
	count := 0
	for batch, n := range encodeBatches(v) {
		task, err := index.AddDocumentsNdjson(ctx, batch, nil)
		if err != nil {
			return wrapError("add documents", err)
		}
		sent, count = append(sent, task), count+n
		if err := wait(maxPendingBatches); err != nil {
			return err
		}
		progress(count, v.Communes+v.Streets+v.Localities)
	}
	if err := wait(0); err != nil {
		return err
	}
	return d.checkCount(ctx, index, count)
}

// createIndex creates an index with its settings. The index may exist and hold documents of an interrupted Fill.
func (d *Indexes) createIndex(ctx context.Context, name string) (meilisearch.IndexManager, error) {
	task, err := d.client.CreateIndex(ctx, &meilisearch.IndexConfig{Uid: name, PrimaryKey: "id"})
	if err = d.waitForTask(ctx, "make the index", task, err); err != nil && !isTaskError(err, "index_already_exists") {
		return nil, err
	}
	index := d.client.Index(name)
	task, err = index.UpdateSettings(ctx, settings())
	if err := d.waitForTask(ctx, "set the index up", task, err); err != nil {
		return nil, err
	}
	task, err = index.UpdateFacetSearch(ctx, false) // no client searches the values of filters
	return index, d.waitForTask(ctx, "set the index up", task, err)
}

// checkCount fails when documents are missing.
func (d *Indexes) checkCount(ctx context.Context, index meilisearch.IndexManager, want int) error {
	stats, err := index.GetStats(ctx, nil)
	if err == nil && stats.NumberOfDocuments != int64(want) {
		err = fmt.Errorf("%d documents of %d are there", stats.NumberOfDocuments, want)
	}
	return wrapError("count documents", err)
}

// encodeBatches yields the documents of a vintage as newline-delimited JSON, batchSize at a time, each with its number
// of documents.
func encodeBatches(v *vintage.Vintage) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		var lines bytes.Buffer
		n, out := 0, json.NewEncoder(&lines)
		for d := range documents(v) {
			if err := out.Encode(d); err != nil {
				continue // cannot happen: a document holds only texts and numbers
			}
			if n++; n == batchSize {
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

// publishDraft renames a complete draft to the name of the index, which must be free.
func (d *Indexes) publishDraft(ctx context.Context, name string) error {
	task, err := d.client.SwapIndexes(ctx, []*meilisearch.SwapIndexesParams{{Indexes: []string{name + draftSuffix, name}, Rename: true}})
	return d.waitForTask(ctx, "name the index", task, err)
}

// deleteIndex deletes an index. It is not an error when the index does not exist.
func (d *Indexes) deleteIndex(ctx context.Context, name string) error {
	task, err := d.client.DeleteIndex(ctx, name)
	if err = d.waitForTask(ctx, "delete an index", task, err); isTaskError(err, "index_not_found") {
		return nil
	}
	return err
}

// isTaskError reports whether a task failed with that code.
func isTaskError(err error, code string) bool {
	e, ok := errors.AsType[*TaskError](err)
	return ok && e.Code == code
}

// The id of a document is one of these prefixes and the ordinal.
const (
	streetPrefix  = "s"
	communePrefix = "c"
)

// document is the document of a street, a locality or a commune. Names are stored as the vintage's terms: folded, with
// abbreviations expanded.
type document struct {
	ID         string       `json:"id"`
	Type       address.Type `json:"type"`
	Name       string       `json:"nom"`
	LieuxDits  []string     `json:"lieux_dits,omitempty"` // of the street's addresses
	Communes   []string     `json:"communes"`             // the names of its commune
	Former     []string     `json:"anciennes_communes,omitempty"`
	Rank       uint32       `json:"rang"` // the commune's ordinal: 0 is the one with most addresses
	CityCode   string       `json:"code_insee"`
	Department string       `json:"departement"`
	Postcodes  []string     `json:"codes_postaux"` // of the commune
}

// documents yields all documents of a vintage, always in the same order.
func documents(v *vintage.Vintage) iter.Seq[document] {
	return func(yield func(document) bool) {
		for ordinal := range uint32(v.Communes) {
			c := v.Commune(ordinal)
			shared := newCommuneDocument(v, ordinal, c)
			if !yield(shared) {
				return
			}
			for s := c.From; s < c.To; s++ {
				if !yield(newStreetDocument(v, s, shared)) {
					return
				}
			}
		}
	}
}

// newCommuneDocument is the document of a commune. The documents of its streets start as copies of it.
func newCommuneDocument(v *vintage.Vintage, ordinal uint32, c vintage.Commune) document {
	d := document{ID: fmt.Sprint(communePrefix, ordinal), Type: address.Municipality, Name: normalizeName(v, c.Name), Rank: ordinal,
		CityCode: c.String(), Department: commune.DepartmentOf(c.String())}
	for place, to := v.CommunePlaces(ordinal); place < to; place++ {
		p := v.Place(place)
		if p.Kind == vintage.Old {
			d.Former = append(d.Former, normalizeName(v, p.Name))
		} else {
			d.Communes = append(d.Communes, normalizeName(v, p.Name))
		}
	}
	codes := v.CommunePostcodes(ordinal)
	for i := range codes.Len() {
		d.Postcodes = append(d.Postcodes, fmt.Sprintf("%05d", codes.At(i)))
	}
	return d
}

// newStreetDocument is the document of a street. d is the document of its commune, from which it keeps what they share.
func newStreetDocument(v *vintage.Vintage, street uint32, d document) document {
	s := v.Street(street)
	d.ID, d.Type, d.Name = fmt.Sprint(streetPrefix, street), address.StreetType, normalizeName(v, s.Name)
	if s.Locality {
		d.Type = address.LocalityType
	}
	seen := map[uint32]bool{vintage.None: true}
	for i, to := v.StreetFacets(street); i < to; i++ {
		if name := v.Facet(i).LieuDit; !seen[name] {
			seen[name] = true
			d.LieuxDits = append(d.LieuxDits, normalizeName(v, name))
		}
	}
	return d
}

// normalizeName joins the terms of a name.
func normalizeName(v *vintage.Vintage, name uint32) string {
	terms := v.NameTerms(name)
	words := make([]string, terms.Len())
	for i := range words {
		words[i] = string(v.Term(terms.At(i)))
	}
	return strings.Join(words, " ")
}
