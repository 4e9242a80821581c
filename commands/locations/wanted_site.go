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

// wantedSite is one row of a batch. Both of its possible contents are prepared at most once, however often the row is classified:
// the decision may see a later state than the one that the batch was prepared on.
type wantedSite struct {
	Row
	hash            locations.ContentHash
	asGiven         preparedContent // the content as the customer gave it
	withoutPosition preparedContent // the content without its position, if that is only the geocoded one that we showed

	// what the last classify found
	current        siteState
	operation      string           // of event.SiteRow; "" if nothing is written, unless a geocode retry succeeds
	chosen         *preparedContent // the content to write; nil if the site keeps its content
	isGeocodeRetry bool             // the content is the same and had no position: it is written if it has one now
}

// isUnprepared reports whether there is a chosen content that is not prepared yet.
func (w *wantedSite) isUnprepared() bool { return w.chosen != nil && !w.chosen.isPrepared }

// prepare prepares the chosen content if it is unprepared.
func (w *wantedSite) prepare(ctx context.Context, geocoder Geocoder) error {
	if !w.isUnprepared() {
		return nil
	}
	return w.chosen.prepare(ctx, geocoder, w.hash)
}

// prepareAsGiven prepares the content as the customer gave it, before any classification chose it.
func (w *wantedSite) prepareAsGiven(ctx context.Context, geocoder Geocoder) error {
	return w.asGiven.prepare(ctx, geocoder, w.hash)
}

// preparedContent is a content and, once isPrepared, what the log would keep of it.
type preparedContent struct {
	content    locations.Content
	isPrepared bool
	position   *locations.Position // the customer's own or the geocoded one; nil if there is neither
	text       event.Personal      // JSON of locations.StoredSite
	digest     locations.Digest
}

// newWantedSite hashes the content and makes its second form. A customer who reads a site and writes it back sends the geocoded
// position as if it were the customer's own. withoutPosition is the content that was meant.
func newWantedSite(r Row) *wantedSite {
	withoutPosition := r.Content
	withoutPosition.Lat, withoutPosition.Lon = nil, nil
	if a := withoutPosition.Address; a != nil && *a != (locations.SiteAddress{}) {
		withoutPosition.IDBan = "" // without an address the BAN id is kept: it is all that a position can be found by
	}
	return &wantedSite{Row: r, hash: r.Content.Hash(), asGiven: preparedContent{content: r.Content}, withoutPosition: preparedContent{content: withoutPosition}}
}

// classify decides what the row does to a site in a state, or to a site that is not known. The digest of the stored content
// answers whether the new one is the same, or the same with the position that the site shows, so no content is read.
// With keepsInactive an inactive site is not reactivated.
func (w *wantedSite) classify(s siteState, known, keepsInactive bool) {
	w.current, w.operation, w.chosen, w.isGeocodeRetry = s, "", nil, false
	if !known {
		w.operation, w.chosen = event.SiteCreated, &w.asGiven
		return
	}
	switch similarity := s.digest.Compare(w.hash); {
	case similarity == locations.Same:
		if w.isGeocodeRetry = s.isUnlocated; w.isGeocodeRetry {
			w.chosen = &w.asGiven
		}
	case similarity == locations.SameShownPosition && s.isGeocoded: // the geocoded position came back with another content
		w.operation, w.chosen = event.SiteUpdated, &w.withoutPosition
	default:
		w.operation, w.chosen = event.SiteUpdated, &w.asGiven
	}
	if !s.active && !keepsInactive {
		w.operation = event.SiteReactivated
	}
}

// eventRow returns the row to write, once the chosen content is prepared. It returns false if nothing is written.
func (w *wantedSite) eventRow() (event.SiteRow, bool) {
	if w.isGeocodeRetry && w.chosen.position == nil {
		w.chosen = nil // its address is still not found: the content stays
	} else if w.isGeocodeRetry && w.operation == "" {
		w.operation = event.SiteUpdated
	}
	r := event.SiteRow{ExternalID: w.ExternalID, Operation: w.operation}
	if c := w.chosen; c != nil {
		r.Content, r.Digest, r.Unlocated = c.text, c.digest[:], c.position == nil
		r.Geocoded = c.position != nil && c.position.Source == locations.SourceBAN
	} else {
		r.Unlocated = w.current.isUnlocated
	}
	return r, w.operation != ""
}

// prepare finds the position of the content and encodes both. hash is that of the content as the customer gave it: the two forms
// of a wantedSite have the same Digest but for their positions.
func (c *preparedContent) prepare(ctx context.Context, geocoder Geocoder, hash locations.ContentHash) error {
	c.position = c.content.OwnPosition()
	if c.position == nil {
		p, found, err := geocoder.Geocode(ctx, c.content)
		if err := errors.Join(ctx.Err(), err); err != nil {
			return fmt.Errorf("geocode a site: %w", err)
		}
		if found {
			p.Source = locations.SourceBAN
			c.position = &p
		}
	}
	stored := locations.StoredSite{Content: c.content, Position: c.position}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // escapes would only make the text larger
	if err := e.Encode(stored); err != nil {
		return fmt.Errorf("encode a site: %w", err)
	}
	c.text = event.Personal(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	c.digest, c.isPrepared = hash.Digest(stored), true
	return nil
}
