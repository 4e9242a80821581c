// Package places is a stand-in until the read model lands.
package places

import (
	"context"
	"errors"
	"iter"
	"time"

	"lieudit/schemas/site"
)

type Places struct{}

var ErrUnknown = errors.New("unknown")
var ErrCursor = errors.New("cursor")

type Status string
type Referential struct {
	Code, Name        string
	Created, Archived time.Time
	Active            int
}

func (p *Places) Referentials(ctx context.Context, account string, status string) ([]Referential, error) {
	return nil, nil
}
func (p *Places) Referential(ctx context.Context, account, code string) (Referential, error) {
	return Referential{}, ErrUnknown
}

type Page struct {
	Cursor string
	Limit  int
}

func (p *Places) Sites(ctx context.Context, account, code string, status Status, page Page) ([]site.Site, string, error) {
	return nil, "", nil
}
func (p *Places) Site(ctx context.Context, account, code, externalID string) (site.Site, error) {
	return site.Site{}, nil
}
func (p *Places) Active(ctx context.Context, account, code string) iter.Seq2[site.Site, error] {
	return nil
}
