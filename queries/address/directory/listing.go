package directory

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

// Listing is the directory of one vintage, as a source of candidates.
type Listing struct {
	*Directory
	index             string
	streets, communes uint32
}

// Of is the directory of a vintage, whether it is listed by now or not.
func (d *Directory) Of(v *vintage.Vintage) *Listing {
	return &Listing{d, d.nameOf(v), uint32(v.Streets + v.Localities), uint32(v.Communes)}
}

// Find answers all asks by one request, which gets no more than two seconds.
func (l *Listing) Find(ctx context.Context, asks []address.Ask) ([]address.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var ask meilisearch.MultiSearchRequest
	for _, a := range asks {
		ask.Queries = append(ask.Queries, l.query(a))
	}
	l.requests.Add(1)
	l.queries.Add(int64(len(asks)))
	got, err := l.client.MultiSearchWithContext(ctx, &ask)
	if err != nil {
		return nil, told("search", err)
	}
	if len(got.Results) != len(asks) {
		return nil, fmt.Errorf("meilisearch: search: %d answers to %d questions", len(got.Results), len(asks))
	}
	found := make([]address.Found, len(asks))
	for i := range asks {
		if found[i], err = l.read(asks[i], got.Results[i].Hits); err != nil {
			return nil, fmt.Errorf("meilisearch: search: %w", err)
		}
	}
	return found, nil
}

// query is an ask as a search.
func (l *Listing) query(a address.Ask) *meilisearch.SearchRequest {
	filter := []string{"type != municipality"}
	if a.Communes {
		filter[0] = "type = municipality"
	}
	within := make([]string, len(a.Within))
	for i, commune := range a.Within {
		within[i] = strconv.Itoa(int(commune))
	}
	for _, in := range [...]struct {
		field  string
		values []string
	}{{"rang", within}, {"codes_postaux", a.Postcodes}, {"departement", a.Departments}} {
		if values := plain(in.values); len(values) > 0 {
			filter = append(filter, in.field+" IN ["+strings.Join(values, ", ")+"]")
		}
	}
	return &meilisearch.SearchRequest{IndexUID: l.index, Query: strings.Join(a.Words, " "), Filter: filter, Limit: int64(a.Limit),
		AttributesToRetrieve: []string{"id"}, MatchingStrategy: meilisearch.All}
}

// plain are the values that are codes; whatever else is typed stays out of a filter's syntax.
func plain(values []string) (codes []string) {
	for _, v := range values {
		if v != "" && strings.Trim(v, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			codes = append(codes, v)
		}
	}
	return codes
}

// read takes hits for what the vintage has.
func (l *Listing) read(a address.Ask, hits meilisearch.Hits) (f address.Found, err error) {
	prefix, of := streetPrefix, l.streets
	if a.Communes {
		prefix, of = communePrefix, l.communes
	}
	for _, hit := range hits {
		var id string
		if err := json.Unmarshal(hit["id"], &id); err != nil {
			return f, fmt.Errorf("a hit without an id: %w", err)
		}
		digits, ok := strings.CutPrefix(id, prefix)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || uint32(n) >= of {
			return f, fmt.Errorf("%q is nothing of this vintage", id)
		}
		f.Entities = append(f.Entities, uint32(n))
	}
	f.More = len(hits) >= a.Limit
	return f, nil
}
