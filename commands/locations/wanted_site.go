package locations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lieudit/schemas/event"
	"lieudit/schemas/locations"
)

// wantedSite is one row of a batch. What is found out about it is kept for when it is judged again, on a later state.
type wantedSite struct {
	Row
	sum             locations.ContentHash
	asGiven         preparedContent // the content as it came
	withoutPosition preparedContent // without the position, which the site showed

	// as judged last
	current        siteState
	operation      string           // "" where nothing becomes of it, but for what retry finds
	chosen         *preparedContent // in which the content is written; nil where it stays
	isGeocodeRetry bool             // the content is written only if it can be placed, which it could not be before
}

// prepare makes the content that is to be written, if any.
func (w *wantedSite) prepare(ctx context.Context, geocoder Geocoder) error {
	if w.chosen == nil || w.chosen.isPrepared {
		return nil
	}
	return w.chosen.prepare(ctx, geocoder, w.sum)
}

// preparedContent is a content as the log would keep it.
type preparedContent struct {
	content    locations.Content
	isPrepared bool
	position   *locations.Position
	text       event.Personal // site.Stored
	digest     locations.Digest
}

func newWantedSite(r Row) *wantedSite {
	withoutPosition := r.Content
	withoutPosition.Lat, withoutPosition.Lon = nil, nil
	if a := withoutPosition.Address; a != nil && *a != (locations.SiteAddress{}) {
		withoutPosition.IDBan = "" // else it is all there is to be placed by
	}
	return &wantedSite{Row: r, sum: r.Content.Hash(), asGiven: preparedContent{content: r.Content}, withoutPosition: preparedContent{content: withoutPosition}}
}

// classify says what becomes of a row where the site stands so, or is not there.
func (w *wantedSite) classify(s siteState, known, keepsInactive bool) {
	w.current, w.operation, w.chosen, w.isGeocodeRetry = s, "", nil, false
	if !known {
		w.operation, w.chosen = event.SiteCreated, &w.asGiven
		return
	}
	switch likeness := s.digest.Compare(w.sum); {
	case likeness == locations.Same:
		if w.isGeocodeRetry = s.isUnlocated; w.isGeocodeRetry {
			w.chosen = &w.asGiven
		}
	case likeness == locations.SameShownPosition && s.isGeocoded:
		w.operation, w.chosen = event.SiteUpdated, &w.withoutPosition
	default:
		w.operation, w.chosen = event.SiteUpdated, &w.asGiven
	}
	if !s.active && !keepsInactive {
		w.operation = event.SiteReactivated
	}
}

// eventRow is what becomes of the site for the log, its content made. It is false where nothing does.
func (w *wantedSite) eventRow() (event.SiteRow, bool) {
	if w.isGeocodeRetry && w.chosen.position == nil {
		w.chosen = nil
	} else if w.isGeocodeRetry && w.operation == "" {
		w.operation = event.SiteUpdated
	}
	r := event.SiteRow{ExternalID: w.ExternalID, Operation: w.operation}
	if f := w.chosen; f != nil {
		r.Content, r.Digest, r.Unlocated = f.text, f.digest[:], f.position == nil
		r.Geocoded = f.position != nil && f.position.Source == locations.SourceBAN
	} else {
		r.Unlocated = w.current.isUnlocated
	}
	return r, w.operation != ""
}

// prepare places the content and writes it down.
func (f *preparedContent) prepare(ctx context.Context, geocoder Geocoder, sum locations.ContentHash) error {
	f.position = f.content.OwnPosition()
	if f.position == nil {
		p, found, err := geocoder.Geocode(ctx, f.content)
		if err := errors.Join(ctx.Err(), err); err != nil {
			return fmt.Errorf("place a site: %w", err)
		}
		if found {
			p.Source = locations.SourceBAN
			f.position = &p
		}
	}
	stored := locations.StoredSite{Content: f.content, Position: f.position}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(stored); err != nil {
		return fmt.Errorf("write down a site: %w", err)
	}
	f.text = event.Personal(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	f.digest, f.isPrepared = sum.Digest(stored), true
	return nil
}
