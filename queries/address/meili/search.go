package meili

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/address"
	"lieudit/queries/address/vintage"
)

// Index is the index of one vintage as a source of candidates. It implements address.Source.
type Index struct {
	*Indexes
	name              string
	streets, communes uint32
}

// Index returns the index of a vintage. It sends no request, so the index need not exist yet.
func (d *Indexes) Index(v *vintage.Vintage) *Index {
	return &Index{d, d.indexName(v), uint32(v.Streets + v.Localities), uint32(v.Communes)}
}

// Find answers all queries with one request. It fails after searchTimeout.
func (l *Index) Find(ctx context.Context, queries []address.CandidateQuery) ([]address.CandidateResult, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	var request meilisearch.MultiSearchRequest
	for _, a := range queries {
		request.Queries = append(request.Queries, l.buildRequest(a))
	}
	l.requests.Add(1)
	l.searches.Add(int64(len(queries)))
	response, err := l.client.MultiSearch(ctx, &request)
	if err != nil {
		return nil, wrapError("search", err)
	}
	if len(response.Results) != len(queries) {
		return nil, fmt.Errorf("meilisearch: search: %d results for %d searches", len(response.Results), len(queries))
	}
	found := make([]address.CandidateResult, len(queries))
	for i := range queries {
		if found[i], err = l.readHits(queries[i], response.Results[i].Hits); err != nil {
			return nil, fmt.Errorf("meilisearch: search: %w", err)
		}
	}
	return found, nil
}

// buildRequest is the search for one query.
func (l *Index) buildRequest(a address.CandidateQuery) *meilisearch.SearchRequest {
	filter := []string{"type != municipality"}
	if a.Communes {
		filter[0] = "type = municipality"
	}
	within := make([]string, len(a.Within))
	for i, commune := range a.Within {
		within[i] = strconv.Itoa(int(commune))
	}
	for _, filtered := range [...]struct {
		field  string
		values []string
	}{{"rang", within}, {"codes_postaux", a.Postcodes}, {"departement", a.Departments}} {
		if values := keepCodes(filtered.values); len(values) > 0 {
			filter = append(filter, filtered.field+" IN ["+strings.Join(values, ", ")+"]")
		}
	}
	return &meilisearch.SearchRequest{IndexUID: l.name, Query: strings.Join(a.Words, " "), Filter: filter, Limit: int64(a.Limit),
		AttributesToRetrieve: []string{"id"}, MatchingStrategy: meilisearch.All}
}

// keepCodes drops the values that are not codes, so that typed text cannot change the syntax of a filter.
func keepCodes(values []string) (codes []string) {
	for _, v := range values {
		if v != "" && strings.Trim(v, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			codes = append(codes, v)
		}
	}
	return codes
}

// readHits converts the hits of one query into ordinals of the vintage. A hit outside of the vintage is an error.
func (l *Index) readHits(a address.CandidateQuery, hits meilisearch.Hits) (f address.CandidateResult, err error) {
	prefix, count := streetPrefix, l.streets
	if a.Communes {
		prefix, count = communePrefix, l.communes
	}
	for _, hit := range hits {
		var id string
		if err := json.Unmarshal(hit["id"], &id); err != nil {
			return f, fmt.Errorf("a hit without an id: %w", err)
		}
		digits, ok := strings.CutPrefix(id, prefix)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || uint32(n) >= count {
			return f, fmt.Errorf("%q is nothing of this vintage", id)
		}
		f.Entities = append(f.Entities, uint32(n))
	}
	f.More = len(hits) >= a.Limit
	return f, nil
}
