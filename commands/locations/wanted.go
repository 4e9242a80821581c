package locations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

// wanted is one row of a batch. What is found out about it is kept for when it is judged again, on a later state.
type wanted struct {
	Row
	sum  site.Sum
	said form // the content as it came
	bare form // without the position, which the site showed

	// as judged last
	stands standing
	op     string // "" where nothing becomes of it, but for what retry finds
	form   *form  // in which the content is written; nil where it stays
	retry  bool   // the content is written only if it can be placed, which it could not be before
}

// make makes the content that is to be written, if any.
func (w *wanted) make(ctx context.Context, placer Placer) error {
	if w.form == nil || w.form.made {
		return nil
	}
	return w.form.make(ctx, placer, w.sum)
}

// form is a content as the log would keep it.
type form struct {
	content  site.Content
	made     bool
	position *site.Position
	text     event.Personal // site.Stored
	digest   site.Digest
}

func newWanted(r Row) *wanted {
	bare := r.Content
	bare.Lat, bare.Lon = nil, nil
	if a := bare.Address; a != nil && *a != (site.Address{}) {
		bare.IDBan = "" // else it is all there is to be placed by
	}
	return &wanted{Row: r, sum: r.Content.Sum(), said: form{content: r.Content}, bare: form{content: bare}}
}

// judge says what becomes of a row where the site stands so, or is not there.
func (w *wanted) judge(s standing, known, quiet bool) {
	w.stands, w.op, w.form, w.retry = s, "", nil, false
	if !known {
		w.op, w.form = event.SiteCreated, &w.said
		return
	}
	switch like := s.digest.Compare(w.sum); {
	case like == site.Same:
		if w.retry = s.lost; w.retry {
			w.form = &w.said
		}
	case like == site.Echoed && s.placed:
		w.op, w.form = event.SiteUpdated, &w.bare
	default:
		w.op, w.form = event.SiteUpdated, &w.said
	}
	if !s.active && !quiet {
		w.op = event.SiteReactivated
	}
}

// row is what becomes of the site for the log, its content made. It is false where nothing does.
func (w *wanted) row() (event.SiteRow, bool) {
	if w.retry && w.form.position == nil {
		w.form = nil
	} else if w.retry && w.op == "" {
		w.op = event.SiteUpdated
	}
	r := event.SiteRow{ExternalID: w.ExternalID, Op: w.op}
	if f := w.form; f != nil {
		r.Content, r.Digest, r.Lost = f.text, f.digest[:], f.position == nil
		r.Placed = f.position != nil && f.position.Source == site.FromBan
	} else {
		r.Lost = w.stands.lost
	}
	return r, w.op != ""
}

// make places the content and writes it down.
func (f *form) make(ctx context.Context, placer Placer, sum site.Sum) error {
	f.position = f.content.Own()
	if f.position == nil {
		p, found, err := placer.Place(ctx, f.content)
		if err := errors.Join(ctx.Err(), err); err != nil {
			return fmt.Errorf("place a site: %w", err)
		}
		if found {
			p.Source = site.FromBan
			f.position = &p
		}
	}
	stored := site.Stored{Content: f.content, Position: f.position}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(stored); err != nil {
		return fmt.Errorf("write down a site: %w", err)
	}
	f.text = event.Personal(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	f.digest, f.made = sum.Digest(stored), true
	return nil
}
