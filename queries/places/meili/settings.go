package meili

import (
	"context"

	"github.com/meilisearch/meilisearch-go"
)

// family is what the names of indexes begin with. A change of settings, or of what documents hold, is a new one, beside the old.
const family = "sites-v1"

var sortedByName = []string{"ordre0:asc", "ordre1:asc", "ordre2:asc", "ordre3:asc"}

// settings are those of the index. The order of the rules is that of finder.ByRelevance.
func settings() *meilisearch.Settings {
	prefix := "indexingTime"
	return &meilisearch.Settings{
		SearchableAttributes: []string{"nom", "lieu", "adresse"},
		DisplayedAttributes:  shown,
		SortableAttributes:   []string{"ordre0", "ordre1", "ordre2", "ordre3"},
		RankingRules:         []string{"words", "typo", "exactness", "attributeRank", "sort"},
		ProximityPrecision:   meilisearch.ByAttribute, // no rule looks at it
		PrefixSearch:         &prefix,
		SearchCutoffMs:       searchTime.Milliseconds(),
		Pagination:           &meilisearch.Pagination{MaxTotalHits: everything},
		TypoTolerance: &meilisearch.TypoTolerance{
			Enabled:             true,
			MinWordSizeForTypos: meilisearch.MinWordSizeForTypos{OneTypo: 4 + markLetters, TwoTypos: 8 + markLetters},
			DisableOnWords:      []string{}, DisableOnAttributes: []string{},
		},
	}
}

// filterable are the attributes in filters, and how: none of them is ever searched in.
func filterable() []any {
	return []any{
		filters(true, false, "copie", "compte", "referentiel", "actif", "tags", "marque"),
		filters(true, true, "lat", "lon", "ordre0", "externe"),
	}
}

func filters(equality, comparison bool, attributes ...string) meilisearch.AttributeRule {
	return meilisearch.AttributeRule{
		AttributePatterns: attributes,
		Features:          meilisearch.AttributeFeatures{Filter: meilisearch.FilterFeatures{Equality: equality, Comparison: comparison}},
	}
}

// furnish gives the index its settings. Where it has them nothing happens.
func (x *Index) furnish(ctx context.Context) error {
	rules := filterable()
	if err := x.done(ctx)(x.index().UpdateFilterableAttributesWithContext(ctx, &rules)); err != nil {
		return err
	}
	if err := x.done(ctx)(x.index().UpdateFacetSearchWithContext(ctx, false)); err != nil {
		return err
	}
	return x.done(ctx)(x.index().UpdateSettingsWithContext(ctx, settings()))
}
