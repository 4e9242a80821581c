// Package siteindex is the contract of the Meilisearch index of sites: projections/searchindex/meili writes it and
// queries/locations/meili reads it. The attributes' names are in the indexes that exist, and in the filters of both sides. No
// typed text is ever part of a filter, only its HashText.
//
// If a document's form or the settings change, a new family of indexes is needed (see Name).
package siteindex

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// indexFamily is the beginning of the indexes' names.
const indexFamily = "sites-v2"

// Name is the name of the index of a log's sites. It contains the log's UUID, so that one server can hold the indexes of two
// logs.
func Name(log string) string { return indexFamily + "-" + log }

// Document is a site as the server keeps it. Its texts are words encoded by queries/locations/meili.
type Document struct {
	ID          string   `json:"id"`          // DocumentID of the row
	Generation  string   `json:"copie"`       // HashText of the generation that the row is from
	Account     string   `json:"compte"`      // HashText
	Referential string   `json:"referentiel"` // HashText of the code
	Active      bool     `json:"actif"`
	Tags        []string `json:"tags"` // HashText of each folded tag
	ExternalID  string   `json:"externe"`
	Name        string   `json:"nom"`     // words of the name
	Town        string   `json:"lieu"`    // words of tags, town and postcode
	Address     string   `json:"adresse"` // words of the rest of the address
	FoldedName  string   `json:"tri"`     // the name as it is sorted by
	SortKey0    string   `json:"ordre0"`
	SortKey1    string   `json:"ordre1"`
	SortKey2    string   `json:"ordre2"`
	SortKey3    string   `json:"ordre3"`
	Lat         *float64 `json:"lat,omitempty"`
	Lon         *float64 `json:"lon,omitempty"`
}

// Checkpoint is the one document that is not a site: it names the generation that fills the index, and the position up to
// which it did. While it is missing the index is incomplete and answers nothing.
type Checkpoint struct {
	ID             string `json:"id"`
	IsCheckpoint   bool   `json:"marque"`
	GenerationHash string `json:"copie"`
	Generation     string `json:"de"`
	Position       int64  `json:"position"`
}

// NewCheckpoint is the checkpoint of a generation at a position of the log.
func NewCheckpoint(generation string, position int64) Checkpoint {
	return Checkpoint{CheckpointID, true, HashText(generation), generation, position}
}

// The checkpoint's id, and the filter that selects it alone.
const (
	CheckpointID     = "marque"
	CheckpointFilter = "marque = true"
)

const (
	// MaxAccountSites is the most sites that an answer can hold: no account has more.
	MaxAccountSites = 1_000_000
	// AccountMarkLetters is how many letters of its account's hash each word of a document contains. They keep the words of
	// different accounts apart.
	AccountMarkLetters = 8
	// SearchTimeout is how long a search may take. The server then returns what it has found.
	SearchTimeout = 5 * time.Second
)

// SortAttributes hold the order by name and are compared one after the other.
var SortAttributes = []string{"ordre0", "ordre1", "ordre2", "ordre3"}

// DisplayedAttributes are the attributes that the server returns, the id first. They contain only the folded name and the
// position of a site's content.
var DisplayedAttributes = []string{"id", "tri", "lat", "lon"}

// DocumentID is the id of a row's document. The server takes no slashes in ids.
func DocumentID(row string) string { return base64.RawURLEncoding.EncodeToString([]byte(row)) }

// ParseDocumentID returns the row's id, its referential's code and its external id. ok is false if the id is not that of a
// site.
func ParseDocumentID(id string) (row, referential, externalID string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return "", "", "", false
	}
	parts := strings.SplitN(string(b), "/", 3)
	if len(parts) != 3 {
		return "", "", "", false
	}
	return string(b), parts[1], parts[2], true
}

// GenerationFilter selects the documents of a generation with the operator "=", and all others with "!=".
func GenerationFilter(operator, generation string) string {
	return "copie " + operator + " " + Quote(HashText(generation))
}

// AccountsFilter selects the sites of some accounts.
func AccountsFilter(accounts []string) string {
	hashes := make([]string, len(accounts))
	for i, account := range accounts {
		hashes[i] = Quote(HashText(account))
	}
	return "compte IN [" + strings.Join(hashes, ", ") + "]"
}

// HashText replaces a text in documents and filters by 16 letters from a to z.
func HashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	letters := make([]byte, 2*AccountMarkLetters)
	for i := range letters {
		letters[i] = 'a' + sum[i]%26
	}
	return string(letters)
}

// Quote is a word in quotation marks. It escapes nothing: the word is a hash or encoded.
func Quote(word string) string { return `"` + word + `"` }
