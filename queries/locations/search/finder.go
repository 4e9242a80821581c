// Package search is the contract of the search of an account's sites: what is asked, what is found and in which order.
// Engines keep it, each in its own way; findertest holds them to it. It knows no engine and holds no data.
package search

import (
	"context"
	"errors"

	"lieudit/schemas/locations"
)

// Status says which sites are looked for.
type Status string

const (
	Active   Status = "actif" // also when nothing is said
	Inactive Status = "inactif"
	All      Status = "tous"
)

// Sort is the order that is asked for.
type Sort string

const (
	// ByRelevance is the order of how well a site answers the text, also when nothing is said. Fewer typos come first;
	// then fewer words that are only the beginning of the site's word, or only stand for it; then words of the name
	// before those of tags, town and postcode, and these before those of the rest of the address. A site whose
	// external id is the text, where that is looked at, comes before all. What answers equally well is nearest first
	// where there is a center, then as ByName. Without a text it is ByDistance where there is a center, else ByName.
	ByRelevance Sort = "pertinence"
	// ByDistance is from the center outwards, sites without a position last, then as ByName.
	ByDistance Sort = "distance"
	// ByName is by the folded name, sites without one last, then by external id, then by referential, all as bytes.
	ByName Sort = "nom"
)

// Query is a question about the sites of one account. What is found meets every part of it that is given.
//
// A text is cut into words as Words does. Each of them must be among the words of the site's name, address and tags,
// which Terms cuts: as it is; as what it stands for (st: saint); as a beginning, the last word alone; or with the typos
// that Typos allows. A text of nothing but signs finds nothing; a blank one is no text.
//
// Where the question is private the text may instead, whole and in any case, be a site's external id or its beginning.
// Nothing else of a site is ever looked at, whoever asks: not its id_ban, telephone, email, site_web, horaires,
// proprietes, nor its geocode_score.
type Query struct {
	Account          string
	Text             string
	Center           *Point
	Radius           float64  // metres from the center, its edge included; 0 for none
	Box              *Box     // edges included
	Referential      string   // a code; "" for all
	Tags             []string // the site has all of them, compared as Tag does
	Status           Status
	Sort             Sort
	Limit            int    // hits a page, at least 1
	After            string // Next of the page before, "" for the first
	MatchExternalIDs bool   // a secret key asks
}

// Hit is a site that was found.
type Hit struct {
	Site     locations.Site
	Distance float64 // metres from the center; 0 where there is none, or where the site has no position
}

// Result is a page of what was found. Next asks for the page after it, "" when there is none: a cursor that holds the
// place of the last hit in the order, so that however sites come, go and move, those that did not change are neither
// repeated nor left out. It is not signed: who hands it to strangers sees to that.
type Result struct {
	Hits []Hit
	Next string
}

// Engine finds sites. It is safe for concurrent use. What was written before the question, as far as the engine was told,
// is found, or the error says why not. An account it knows nothing of has no sites.
//
// Errors: ErrQuestion, ErrCursor, ErrBehind, that of ctx, and those of what the engine asks itself.
type Engine interface {
	Search(ctx context.Context, q Query) (Result, error)
}

var (
	// ErrInvalidQuery: the question does not make sense, as Check says.
	ErrInvalidQuery = errors.New("not a question about sites")
	// ErrInvalidCursor: the cursor is none that was given, or was given for another order.
	ErrInvalidCursor = errors.New("not a cursor of this search")
	// ErrStaleIndex: what was written is not searchable yet, although it was waited for.
	ErrStaleIndex = errors.New("the search of sites is behind what was written")
)
