package meili

import (
	"context"

	"github.com/meilisearch/meilisearch-go"
)

// indexFamily is what the names of indexes begin with. A change of settings, or of what documents hold, is a new one, beside the old.
const indexFamily = "sites-v1"

var orderByName = []string{"ordre0:asc", "ordre1:asc", "ordre2:asc", "ordre3:asc"}

// settings are those of the index. The order of the rules is that of finder.ByRelevance.
func settings() *meilisearch.Settings {
	prefix := "indexingTime"
	return &meilisearch.Settings{
		SearchableAttributes: []string{"nom", "lieu", "adresse"},
		DisplayedAttributes:  displayedAttributes,
		SortableAttributes:   []string{"ordre0", "ordre1", "ordre2", "ordre3"},
		RankingRules:         []string{"words", "typo", "exactness", "attributeRank", "sort"},
		ProximityPrecision:   meilisearch.ByAttribute, // no rule looks at it
		PrefixSearch:         &prefix,
		SearchCutoffMs:       searchTimeout.Milliseconds(),
		Pagination:           &meilisearch.Pagination{MaxTotalHits: maxAccountSites},
		TypoTolerance: &meilisearch.TypoTolerance{
			Enabled:             true,
			MinWordSizeForTypos: meilisearch.MinWordSizeForTypos{OneTypo: 4 + accountMarkLetters, TwoTypos: 8 + accountMarkLetters},
			DisableOnWords:      []string{}, DisableOnAttributes: []string{},
		},
	}
}

// filterableAttributes are the attributes in filters, and how: none of them is ever searched in.
func filterableAttributes() []any {
	return []any{
		filterRule(true, false, "copie", "compte", "referentiel", "actif", "tags", "marque"),
		filterRule(true, true, "lat", "lon", "ordre0", "externe"),
	}
}

func filterRule(equality, comparison bool, attributes ...string) meilisearch.AttributeRule {
	return meilisearch.AttributeRule{
		AttributePatterns: attributes,
		Features:          meilisearch.AttributeFeatures{Filter: meilisearch.FilterFeatures{Equality: equality, Comparison: comparison}},
	}
}

// applySettings gives the index its settings. Where it has them nothing happens.
func (x *Index) applySettings(ctx context.Context) error {
	rules := filterableAttributes()
	if err := x.awaitTask(ctx)(x.handle().UpdateFilterableAttributesWithContext(ctx, &rules)); err != nil {
		return err
	}
	if err := x.awaitTask(ctx)(x.handle().UpdateFacetSearchWithContext(ctx, false)); err != nil {
		return err
	}
	return x.awaitTask(ctx)(x.handle().UpdateSettingsWithContext(ctx, settings()))
}
