package meili

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/queries/places/finder"
)

// source is one of the ways in which a site answers a text: the server has no "or" in its texts.
type source struct {
	text   string
	filter string
	rank   func(found) uint64
}

// A rank is how well a site answers, as local counts it: typos, then words that are beginnings or stand for others, then where
// they are. 0 is for the external id.
const (
	rankTypo   = 1 << 16
	rankBegins = 1 << 8
	rankWords  = 1
	inStreet   = 2
)

// maxMeant is how many abbreviations of a text are looked for as they are and as what they stand for; of others only the latter.
const maxMeant = 2

// ways are the sources of a question, none where nothing can answer it.
func (s *search) ways() []source {
	text := s.Asked()
	if text == "" {
		return []source{{rank: func(found) uint64 { return 0 }}}
	}
	words := finder.Words(text)
	ways := s.readings(words)
	if !s.Private || len(text) > longestID {
		return ways
	}
	external := s.words.external(text)
	return append(ways,
		source{filter: fmt.Sprintf(`externe = "%s"`, external), rank: func(found) uint64 { return 0 }},
		source{filter: fmt.Sprintf(`externe "%s" TO "%s"`, external, external+beyond), rank: func(found) uint64 { return rankWords + rankBegins + inStreet }})
}

const longestID = 128 // characters of an external id

// readings are the ways to read words some of which stand for others.
func (s *search) readings(words []finder.Word) []source {
	if len(words) == 0 {
		return nil
	}
	free, always := []int{}, uint(0)
	for i, w := range words {
		switch {
		case w.Means == nil:
		case len(free) < maxMeant:
			free = append(free, i)
		default:
			always |= 1 << i
		}
	}
	var all []source
	for choice := range 1 << len(free) {
		meant := always
		for n, i := range free {
			if choice&(1<<n) != 0 {
				meant |= 1 << i
			}
		}
		stand := bits.OnesCount(meant)
		all = append(all, source{text: s.words.asked(words, meant), rank: func(f found) uint64 { return f.rank(stand) }})
	}
	return all
}

// rank is the rank of a site in which so many words stand for others.
func (f found) rank(stand int) uint64 {
	var d struct {
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
	if json.Unmarshal(f.Details, &d) != nil {
		return math.MaxInt64
	}
	begins := max(0, d.Exactness.Max-d.Exactness.Matching) + stand
	return rankWords + uint64(d.Typo.Count)*rankTypo + uint64(begins)*rankBegins + uint64((1-d.Attribute.Score)*(rankBegins-2))
}

// ask asks the server all sources at once, for what may be in the answer.
func (s *search) ask(ctx context.Context, far reach) ([][]found, error) {
	filter := s.filter(far)
	if s.Asked() == "" && !s.native() {
		return s.list(ctx, filter)
	}
	m := &meilisearch.MultiSearchRequest{Queries: []*meilisearch.SearchRequest{{IndexUID: s.index, Filter: markFilter, Limit: 1, AttributesToRetrieve: shown[:1]}}}
	for _, from := range s.sources {
		r := &meilisearch.SearchRequest{
			IndexUID: s.index, Query: from.text, Filter: filter, Limit: int64(far.limit), AttributesToRetrieve: shown,
			MatchingStrategy: meilisearch.All, ShowRankingScoreDetails: s.order == finder.ByRelevance && from.text != "",
		}
		if from.filter != "" {
			r.Filter = filter + " AND " + from.filter
		}
		if s.native() {
			r.Sort = sortedByName
		}
		m.Queries = append(m.Queries, r)
	}
	answer, err := s.x.server.MultiSearchWithContext(ctx, m)
	if err != nil {
		return nil, failed("search", err)
	}
	if len(answer.Results) != len(m.Queries) {
		return nil, fmt.Errorf("meilisearch: %d answers to %d questions", len(answer.Results), len(m.Queries))
	}
	if len(answer.Results[0].Hits) == 0 {
		return nil, fmt.Errorf("%w: the index is being filled", finder.ErrBehind)
	}
	hits := make([][]found, len(s.sources))
	for i, r := range answer.Results[1:] {
		hits[i] = make([]found, len(r.Hits))
		for j, h := range r.Hits {
			if err := h.DecodeInto(&hits[i][j]); err != nil {
				return nil, fmt.Errorf("meilisearch: %w", err)
			}
		}
	}
	return hits, nil
}

// list asks for what a filter holds for, in no order: the server need not rank what is found.
func (s *search) list(ctx context.Context, filter string) ([][]found, error) {
	var answer meilisearch.DocumentsResult
	q := &meilisearch.DocumentsQuery{Filter: filter + " OR " + markFilter, Fields: shown, Limit: everything}
	if err := s.x.server.Index(s.index).GetDocumentsWithContext(ctx, q, &answer); err != nil {
		return nil, failed("list", err)
	}
	hits, marked := make([]found, 0, len(answer.Results)), false
	for _, h := range answer.Results {
		var f found
		if err := h.DecodeInto(&f); err != nil {
			return nil, fmt.Errorf("meilisearch: %w", err)
		}
		if f.ID == markID {
			marked = true
		} else {
			hits = append(hits, f)
		}
	}
	if !marked {
		return nil, fmt.Errorf("%w: the index is being filled", finder.ErrBehind)
	}
	return [][]found{hits}, nil
}

// filter holds for what may be in the answer. Nothing that anybody wrote is in it.
func (s *search) filter(far reach) string {
	parts := []string{fmt.Sprintf(`compte = "%s"`, digest(s.Account))}
	if s.Referential != "" {
		parts = append(parts, fmt.Sprintf(`referentiel = "%s"`, digest(s.Referential)))
	}
	switch s.Status {
	case finder.All:
	case finder.Inactive:
		parts = append(parts, "actif = false")
	default:
		parts = append(parts, "actif = true")
	}
	for _, tag := range s.Tags {
		parts = append(parts, fmt.Sprintf(`tags = "%s"`, digest(finder.Tag(tag))))
	}
	if s.order == finder.ByName && s.after != nil || far.equal {
		parts = append(parts, fmt.Sprintf(`ordre0 "%s" TO "%s"`, s.words.key(*s.after)[0], s.words.mark+beyond))
	}
	return strings.Join(append(parts, s.within(far)...), " AND ")
}

// within are the filters of where a site is.
func (s *search) within(far reach) (parts []string) {
	if s.Box != nil {
		parts = append(parts, between(*s.Box))
	}
	if s.Radius > 0 {
		parts = append(parts, between(finder.Around(*s.Center, s.Radius)))
	}
	if far.radius > 0 {
		parts = append(parts, between(finder.Around(*s.Center, far.radius)))
	}
	return parts
}

// between holds in a box. The server's own questions about places would look at those of all accounts.
func between(b finder.Box) string {
	lat := fmt.Sprintf(`lat "%s" TO "%s"`, degrees(b.South), degrees(b.North))
	if b.West <= b.East {
		return fmt.Sprintf(`%s AND lon "%s" TO "%s"`, lat, degrees(b.West), degrees(b.East))
	}
	return fmt.Sprintf(`%s AND (lon >= "%s" OR lon <= "%s")`, lat, degrees(b.West), degrees(b.East))
}

func degrees(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
