package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// problem is the body of a refusal, SPEC 7.1.
type problem struct {
	Detail json.RawMessage `json:"detail"`
}

// codeOf distinguishes refusals of one status: the code of the detail, or the detail itself if it is a text.
func codeOf(a Answer) string {
	p := problem{}
	if json.Unmarshal(a.Body, &p) != nil {
		return ""
	}
	text := ""
	if json.Unmarshal(p.Detail, &text) == nil {
		return text
	}
	object := struct {
		Code string `json:"code"`
	}{}
	_ = json.Unmarshal(p.Detail, &object)
	return object.Code
}

// summarizeRefusal returns the short form of a refusal that commands foresee: status, code, and the numbers that go with the code.
func summarizeRefusal(a Answer) string {
	code := codeOf(a)
	switch {
	case a.Status == 404:
		return "404"
	case a.Status == 422 && strings.HasPrefix(code, "Idempotency-Key"):
		return "422 Idempotency-Key"
	}
	p := struct {
		Detail numbers `json:"detail"`
	}{}
	if json.Unmarshal(a.Body, &p) != nil {
		return fmt.Sprint(a.Status, " ", code)
	}
	return fmt.Sprint(a.Status, " ", p.Detail.text(code))
}

// numbers are the numbers in a refusal, SPEC 7.3.
type numbers struct {
	Code         string `json:"code"`
	ActiveSites  int    `json:"sites_actifs"`
	Capacity     int    `json:"capacite"`
	Ceiling      int    `json:"plafond"`
	Referentials int    `json:"referentiels_actifs"`
	Maximum      int    `json:"maximum"`
	Before       int    `json:"actifs_avant"`
	After        int    `json:"actifs_apres"`
	ActiveKeys   int    `json:"actives"`
}

func (n numbers) text(code string) string {
	switch code {
	case "capacite_sites_depassee":
		return fmt.Sprint(code, " ", n.ActiveSites, " ", n.Capacity, " ", n.Ceiling)
	case "capacite_referentiels_depassee":
		return fmt.Sprint(code, " ", n.Referentials, " ", n.Maximum)
	case "reduction_suspecte":
		return fmt.Sprint(code, " ", n.Before, " ", n.After)
	case "capacite_cles_publiables_depassee":
		return fmt.Sprint(code, " ", n.Ceiling, " ", n.ActiveKeys)
	}
	return code
}

// shownReferential and shownSite are parts of answers.
type (
	shownReferential struct {
		Code   string `json:"code"`
		Name   string `json:"nom"`
		Status string `json:"status"`
		Active int    `json:"sites_actifs"`
	}
	shownSite struct {
		ID          string            `json:"id"`
		Referential string            `json:"referentiel"`
		ExternalID  string            `json:"external_id"`
		Name        string            `json:"nom"`
		IsActive    bool              `json:"actif"`
		Version     int               `json:"version"`
		Deactivated string            `json:"desactive_le"`
		Lat         *float64          `json:"lat"`
		Lon         *float64          `json:"lon"`
		Address     *shownAddress     `json:"adresse"`
		Properties  map[string]string `json:"proprietes"`
	}
)

// shownAddress is the address of a site.
type shownAddress struct {
	Line     string `json:"ligne_1"`
	Postcode string `json:"code_postal"`
	Town     string `json:"commune"`
}

// syncAnswer is the answer of a sync.
type syncAnswer struct {
	Created     int             `json:"crees"`
	Updated     int             `json:"modifies"`
	Unchanged   int             `json:"inchanges"`
	Reactivated int             `json:"reactives"`
	Deactivated int             `json:"desactives"`
	Before      int             `json:"actifs_avant"`
	After       int             `json:"actifs_apres"`
	AllBefore   int             `json:"sites_actifs"`
	Refusal     json.RawMessage `json:"refus"`
}

// summarizePlaces returns the short form, as commands foresee it, of an answer to a command on sites.
func summarizePlaces(c PlacesCommand, a Answer) string {
	if a.Status >= 400 {
		return summarizeRefusal(a)
	}
	switch c := c.(type) {
	case OpenReferential, RenameReferential, ArchiveReferential:
		r := shownReferential{}
		_ = json.Unmarshal(a.Body, &r)
		return fmt.Sprintf("%d %s %s %q", a.Status, r.Code, r.Status, r.Name)
	case SyncSites:
		return summarizeSync(c, a)
	}
	s := shownSite{}
	_ = json.Unmarshal(a.Body, &s)
	return fmt.Sprintf("%d %s v%d %v %q", a.Status, s.ExternalID, s.Version, s.IsActive, s.Name)
}

func summarizeSync(c SyncSites, a Answer) string {
	s := syncAnswer{}
	_ = json.Unmarshal(a.Body, &s)
	refusal := codeOf(Answer{Body: []byte(`{"detail":` + string(s.Refusal) + `}`)})
	n := numbers{}
	_ = json.Unmarshal(s.Refusal, &n)
	if refusal == "referentiel_archive" {
		return "200 refus " + refusal
	}
	text := fmt.Sprintf("%d +%d ~%d =%d ^%d -%d %d>%d of %d", a.Status, s.Created, s.Updated, s.Unchanged, s.Reactivated,
		s.Deactivated, s.Before, s.After, s.AllBefore)
	if c.IsDryRun {
		text += " refus " + n.text(refusal)
	}
	return text
}
