// Package finder is the contract of the search of an account's sites: what is asked, what is found and in which order.
// Engines keep it, each in its own way; findertest holds them to it. It knows no engine and holds no data.
package finder

import (
	"context"
	"errors"

	"lieudit/schemas/site"
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
	// ByRelevance is the order of how well a site answers the text, also when nothing is said: fewer typos first, then
	// fewer words that are only the beginning of one of the site's or stand for one, then words that are in the name before those in tags,
	// town and postcode, and these before those in the rest of the address. What answers equally well is nearest
	// first where there is a center, and then as ByName. A site whose external id is the text comes before all. Without a text it is
	// ByDistance where there is a center, else ByName.
	ByRelevance Sort = "pertinence"
	// ByDistance is from the center outwards, sites without a position last, then as ByName.
	ByDistance Sort = "distance"
	// ByName is by the folded name, sites without one last, then by external id, then by referential: each as bytes.
	ByName Sort = "nom"
)

// Query is a question about the sites of one account. The parts that are given all hold for what is found.
//
// A text is cut into words as Words does, and each word must be among the words of the site's name, address and tags
// (as Terms cuts those): as it is; as what it stands for (st, saint); for the last word also as a beginning; or with
// typos as Typos counts them. A text with nothing but signs in it finds nothing, a blank one is no text.
// Where the question is private the text, as a whole and in any case, may be a site's external id or its beginning instead. Nothing else of a
// site is ever looked at, whoever asks: neither its id_ban nor telephone, email, site_web, horaires, proprietes, geocode_score.
type Query struct {
	Account     string
	Text        string
	Center      *Point
	Radius      float64  // metres from the center, its edge included; 0 for none
	Box         *Box     // edges included
	Referential string   // a code; "" for all
	Tags        []string // the site has all of them, compared as Tag does
	Status      Status
	Sort        Sort
	Limit       int    // hits a page, at least 1
	After       string // Next of the page before, "" for the first
	Private     bool   // a secret key asks
}

// Hit is a site that was found.
type Hit struct {
	Site     site.Site
	Distance float64 // metres from the center; 0 where there is none, or the site has no position
}

// Result is a page of what was found. Next asks for the page after it, "" when there is none: a cursor that
// holds the place of the last hit in the order, so that however sites come, go and move, those that did not change are neither
// repeated nor left out. It is not signed: who lets strangers hold it sees to that.
type Result struct {
	Hits []Hit
	Next string
}

// Engine finds sites. It is safe for concurrent use. What was written and told to it before the question is found, or the error says
// why not. An account that it knows nothing of has no sites.
//
// Errors: ErrQuestion, ErrCursor, ErrBehind, that of ctx, and those of what the engine asks itself.
type Engine interface {
	Search(ctx context.Context, q Query) (Result, error)
}

var (
	// ErrQuestion: the question does not make sense, as Check says.
	ErrQuestion = errors.New("not a question about sites")
	// ErrCursor: the cursor is none that was given, or was given for another order.
	ErrCursor = errors.New("not a cursor of this search")
	// ErrBehind: what was written is not searchable yet, although it was waited for.
	ErrBehind = errors.New("the search of sites is behind what was written")
)
