package meili

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/locations/search"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/siteindex"
)

// subquery is one of the ways in which a site can answer a text: the server has no "or" in its texts.
type subquery struct {
	text   string                 // encoded; "" for every site that the filters match
	filter string                 // besides that of the whole query; "" for none
	rank   func(serverHit) uint64 // search.SortKey.Rank of a hit of this subquery
}

// maxExpandedWords is how many abbreviations of a text are looked for both unchanged and expanded. Further ones are looked for only
// expanded, because each doubles the number of subqueries.
const maxExpandedWords = 2

// serverHit is the part of a document that the server returns.
type serverHit struct {
	ID         string          `json:"id"`
	FoldedName string          `json:"tri"`
	Lat        *float64        `json:"lat"`
	Lon        *float64        `json:"lon"`
	Details    json.RawMessage `json:"_rankingScoreDetails"` // requested only if ranks are needed
}

// buildSubqueries returns the ways in which sites can answer the query, or nil if none can: by the words of the text, with
// abbreviations expanded or not, and by the external id, if the query matches those, which may be the text or begin with it.
func (s *indexSearch) buildSubqueries() []subquery {
	text := s.TrimmedText()
	if text == "" {
		return []subquery{{rank: func(serverHit) uint64 { return 0 }}}
	}
	words := search.QueryWords(text)
	subqueries := s.combineReadings(words)
	if !s.MatchExternalIDs || len(text) > maxExternalIDLength {
		return subqueries
	}
	external := s.encoder.encodeExternalID(text)
	return append(subqueries,
		subquery{filter: fmt.Sprintf(`externe = "%s"`, external), rank: func(serverHit) uint64 { return 0 }},
		subquery{filter: fmt.Sprintf(`externe "%s" TO "%s"`, external, external+rangeEnd), rank: func(serverHit) uint64 { return search.RankWords + search.RankPrefix + uint64(search.InAddress) }})
}

// maxExternalIDLength is how many characters an external id may have. A longer text cannot be one.
const maxExternalIDLength = 128

// combineReadings makes a subquery for each combination of the readings of words: an abbreviation unchanged and expanded, a word
// before the last one as a whole and as a prefix. "bd st michel" has four, "mag flo" two. A text without words has none.
func (s *indexSearch) combineReadings(words []search.Word) []subquery {
	if len(words) == 0 {
		return nil
	}
	optional, abbreviations, alwaysReplaced := []int{}, 0, uint(0)
	for i, w := range words {
		isEarlyPrefix := w.MayBePrefix && i < len(words)-1
		switch {
		case w.Expansions != nil && abbreviations == maxExpandedWords:
			alwaysReplaced |= 1 << i
		case w.Expansions != nil:
			abbreviations++
			optional = append(optional, i)
		case isEarlyPrefix:
			optional = append(optional, i)
		}
	}
	var all []subquery
	for choice := range 1 << len(optional) {
		replaced := alwaysReplaced
		for n, i := range optional {
			if choice&(1<<n) != 0 {
				replaced |= 1 << i
			}
		}
		count := bits.OnesCount(replaced)
		all = append(all, subquery{text: s.encoder.encodeQuery(words, replaced), rank: func(f serverHit) uint64 { return f.rank(count) }})
	}
	return all
}

// rank computes the rank of a site from the server's scores, for a text in which replacedCount words are replaced by expansions or
// prefixes. Words that do not match exactly are prefixes or have typos; the attribute score falls with the field from 1. The rank
// need not be as exact as that of the engine in memory, but it must be the same each time that the same site is queried.
func (f serverHit) rank(replacedCount int) uint64 {
	var details struct {
		Typo struct {
			Count int `json:"typoCount"`
		} `json:"typo"`
		Exactness struct {
			Matching int `json:"matchingWords"`
			Max      int `json:"maxMatchingWords"`
		} `json:"exactness"`
		Attribute struct {
			Score float64 `json:"score"`
		} `json:"attributeRank"`
	}
	if json.Unmarshal(f.Details, &details) != nil {
		return math.MaxInt64
	}
	prefixWords := max(0, details.Exactness.Max-details.Exactness.Matching) + replacedCount
	return search.RankWords + uint64(details.Typo.Count)*search.RankTypo + uint64(prefixWords)*search.RankPrefix + uint64((1-details.Attribute.Score)*(search.RankPrefix-2))
}

// orderByName is the server's form of search.ByName.
var orderByName = []string{"ordre0:asc", "ordre1:asc", "ordre2:asc", "ordre3:asc"}

// errIncomplete means that the index has no checkpoint, and so may lack any site.
var errIncomplete = fmt.Errorf("%w: the index is being filled", search.ErrStaleIndex)

// fetchHits sends all subqueries to the server in one request. The first query of the request is for the checkpoint:
// without one the index is being filled, and the answer is search.ErrStaleIndex.
func (s *indexSearch) fetchHits(ctx context.Context, scope searchScope) ([][]serverHit, error) {
	filter := s.buildFilter(scope)
	if s.TrimmedText() == "" && !s.usesServerOrder() {
		return s.fetchUnranked(ctx, filter)
	}
	request := s.buildRequest(filter, scope)
	response, err := s.engine.server.MultiSearch(ctx, request)
	if err != nil {
		return nil, meiliclient.WrapError("search", err)
	}
	if len(response.Results) != len(request.Queries) {
		return nil, fmt.Errorf("meilisearch: %d answers to %d questions", len(response.Results), len(request.Queries))
	}
	if len(response.Results[0].Hits) == 0 {
		return nil, errIncomplete
	}
	hits := make([][]serverHit, len(s.subqueries))
	for i, r := range response.Results[1:] {
		if hits[i], err = decodeHits(r.Hits); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// buildRequest asks for the checkpoint and then for the hits of each subquery. All words of a text must match (the strategy "all"):
// by default the server leaves out words until enough is found.
func (s *indexSearch) buildRequest(filter string, scope searchScope) *meilisearch.MultiSearchRequest {
	request := &meilisearch.MultiSearchRequest{Queries: []*meilisearch.SearchRequest{{IndexUID: s.indexName, Filter: siteindex.CheckpointFilter, Limit: 1, AttributesToRetrieve: siteindex.DisplayedAttributes[:1]}}}
	for _, sub := range s.subqueries {
		r := &meilisearch.SearchRequest{
			IndexUID: s.indexName, Query: sub.text, Filter: filter, Limit: int64(scope.limit), AttributesToRetrieve: siteindex.DisplayedAttributes,
			MatchingStrategy: meilisearch.All, ShowRankingScoreDetails: s.order == search.ByRelevance && sub.text != "",
		}
		if sub.filter != "" {
			r.Filter = filter + " AND " + sub.filter
		}
		if s.usesServerOrder() {
			r.Sort = orderByName
		}
		request.Queries = append(request.Queries, r)
	}
	return request
}

// decodeHits reads the documents of an answer, including the checkpoint if the filter matches it. They stay in the server's order.
func decodeHits(raw meilisearch.Hits) ([]serverHit, error) {
	hits := make([]serverHit, len(raw))
	for i, h := range raw {
		if err := h.DecodeInto(&hits[i]); err != nil {
			return nil, fmt.Errorf("meilisearch: %w", err)
		}
	}
	return hits, nil
}

// fetchUnranked reads all documents that match a filter, in no order, so that the server need not rank them.
func (s *indexSearch) fetchUnranked(ctx context.Context, filter string) ([][]serverHit, error) {
	var response meilisearch.DocumentsResult
	q := &meilisearch.DocumentsQuery{Filter: filter + " OR " + siteindex.CheckpointFilter, Fields: siteindex.DisplayedAttributes, Limit: siteindex.MaxAccountSites}
	if err := s.engine.server.Index(s.indexName).GetDocuments(ctx, q, &response); err != nil {
		return nil, meiliclient.WrapError("list", err)
	}
	hits, err := decodeHits(response.Results)
	if err != nil {
		return nil, err
	}
	sites := slices.DeleteFunc(hits, func(h serverHit) bool { return h.ID == siteindex.CheckpointID })
	if len(sites) == len(response.Results) {
		return nil, errIncomplete
	}
	return [][]serverHit{sites}, nil
}

// buildFilter returns a filter that matches everything that can be in the answer. It contains no text that a client wrote: account,
// referential and tags are hashes, the cursor's sort key is encoded, and the rest is numbers. It compares only the first part of the
// sort key, so candidates may still be before the cursor; readPage leaves these out.
func (s *indexSearch) buildFilter(scope searchScope) string {
	parts := []string{fmt.Sprintf(`compte = "%s"`, siteindex.HashText(s.Account))}
	if s.Referential != "" {
		parts = append(parts, fmt.Sprintf(`referentiel = "%s"`, siteindex.HashText(s.Referential)))
	}
	switch s.Status {
	case search.All:
	case search.Inactive:
		parts = append(parts, "actif = false")
	default:
		parts = append(parts, "actif = true")
	}
	for _, tag := range s.Tags {
		parts = append(parts, fmt.Sprintf(`tags = "%s"`, siteindex.HashText(search.FoldTag(tag))))
	}
	if s.order == search.ByName && s.after != nil || scope.sameRank {
		parts = append(parts, fmt.Sprintf(`ordre0 "%s" TO "%s"`, s.encoder.encodeSortKey(*s.after)[0], s.encoder.accountMark+rangeEnd))
	}
	return strings.Join(append(parts, s.areaFilters(scope)...), " AND ")
}

// areaFilters returns filters that match within the query's box and radius and within the scope's radius.
func (s *indexSearch) areaFilters(scope searchScope) (parts []string) {
	if s.Box != nil {
		parts = append(parts, boxFilter(*s.Box))
	}
	if s.Radius > 0 {
		parts = append(parts, boxFilter(search.BoxAround(*s.Center, s.Radius)))
	}
	if scope.radius > 0 {
		parts = append(parts, boxFilter(search.BoxAround(*s.Center, scope.radius)))
	}
	return parts
}

// boxFilter returns a filter that matches within a box. The server's own geo filters would look at the sites of all accounts.
func boxFilter(b search.Box) string {
	lat := fmt.Sprintf(`lat "%s" TO "%s"`, formatDegrees(b.South), formatDegrees(b.North))
	if b.West <= b.East {
		return fmt.Sprintf(`%s AND lon "%s" TO "%s"`, lat, formatDegrees(b.West), formatDegrees(b.East))
	}
	return fmt.Sprintf(`%s AND (lon >= "%s" OR lon <= "%s")`, lat, formatDegrees(b.West), formatDegrees(b.East))
}

// formatDegrees formats a number without an exponent, which filters do not support.
func formatDegrees(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
