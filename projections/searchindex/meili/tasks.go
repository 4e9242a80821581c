package meili

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/projections/searchindex"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/siteindex"
)

// maxTaskPoll is the longest pause between two checks whether a task has ended.
const maxTaskPoll = 50 * time.Millisecond

// runTask gives the server a task and waits until it has ended. The pause between two checks doubles from 1 ms up to
// maxTaskPoll. If ctx ends, the task may still be done. Its errors have passed through classifyError.
func (x *Index) runTask(ctx context.Context, enqueue func(meilisearch.IndexManager) (*meilisearch.TaskInfo, error)) error {
	queued, err := enqueue(x.handle())
	if err != nil {
		return classifyError(meiliclient.WrapError("write", err))
	}
	for pause := time.Millisecond; ; pause = min(2*pause, maxTaskPoll) {
		task, err := x.server.GetTask(ctx, queued.TaskUID)
		if err != nil {
			return meiliclient.WrapError("task", err)
		}
		switch task.Status {
		case meilisearch.TaskStatusSucceeded:
			return nil
		case meilisearch.TaskStatusFailed, meilisearch.TaskStatusCanceled:
			reason := &meiliclient.APIError{Code: string(task.Error.Code), Message: task.Error.Message}
			return classifyError(fmt.Errorf("meilisearch: task %d %s: %w", queued.TaskUID, task.Status, reason))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// classifyError marks an error that will be the same next time (ErrRefused), or that means that the index is lost (ErrLost).
// Others may pass.
func classifyError(err error) error {
	switch code := meiliclient.ErrorCode(err); {
	case code == "index_not_found":
		return fmt.Errorf("%w: %w", searchindex.ErrLost, err)
	case code == "payload_too_large", code == "malformed_payload", strings.HasPrefix(code, "invalid_document"), code == "missing_document_id",
		code == "max_fields_limit_exceeded", code == "immutable_field":
		return fmt.Errorf("%w: %w", searchindex.ErrRefused, err)
	}
	return err
}

// applySettings gives the index its settings, if it does not have them yet. The client's Settings cannot hold filters of this
// form, and omit a facet search that is false, so those two are tasks of their own.
func (x *Index) applySettings(ctx context.Context) error {
	rules := filterableAttributes()
	err := x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
		return index.UpdateFilterableAttributes(ctx, &rules)
	})
	if err != nil {
		return err
	}
	err = x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
		return index.UpdateFacetSearch(ctx, false)
	})
	if err != nil {
		return err
	}
	return x.runTask(ctx, func(index meilisearch.IndexManager) (*meilisearch.TaskInfo, error) {
		return index.UpdateSettings(ctx, settings())
	})
}

// settings are the settings of the index. The order of the ranking rules is that of search.ByRelevance. The word lengths from
// which typos are allowed are those of search.AllowedTypos.
func settings() *meilisearch.Settings {
	prefix := "indexingTime"
	return &meilisearch.Settings{
		SearchableAttributes: []string{"nom", "lieu", "adresse"},
		DisplayedAttributes:  siteindex.DisplayedAttributes,
		SortableAttributes:   siteindex.SortAttributes,
		RankingRules:         []string{"words", "typo", "exactness", "attributeRank", "sort"},
		ProximityPrecision:   meilisearch.ByAttribute, // no rule uses it
		PrefixSearch:         &prefix,
		SearchCutoffMs:       siteindex.SearchTimeout.Milliseconds(),
		Pagination:           &meilisearch.Pagination{MaxTotalHits: siteindex.MaxAccountSites},
		TypoTolerance: &meilisearch.TypoTolerance{
			Enabled: true,
			MinWordSizeForTypos: meilisearch.MinWordSizeForTypos{ // each word carries the account's mark
				OneTypo: 4 + siteindex.AccountMarkLetters, TwoTypos: 8 + siteindex.AccountMarkLetters,
			},
			DisableOnWords: []string{}, DisableOnAttributes: []string{},
		},
	}
}

// filterableAttributes are the attributes that filters may name, and with which operators: the first group only by equality,
// the second by range too. Searches do not match them.
func filterableAttributes() []any {
	return []any{
		filterRule(true, false, "copie", "compte", "referentiel", "actif", "tags", "marque"),
		filterRule(true, true, "lat", "lon", "ordre0", "externe"),
	}
}

// filterRule allows filters on attributes, but no search within their values.
func filterRule(equality, comparison bool, attributes ...string) meilisearch.AttributeRule {
	return meilisearch.AttributeRule{
		AttributePatterns: attributes,
		Features:          meilisearch.AttributeFeatures{Filter: meilisearch.FilterFeatures{Equality: equality, Comparison: comparison}},
	}
}
