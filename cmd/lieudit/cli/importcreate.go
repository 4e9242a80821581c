package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/http/sitefile"
	"lieudit/queries/address/commune"
	"lieudit/queries/locations/alert"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// The service makes a dry run only in a referential that exists, and the code of an opened one is never free again. So with --create
// an import forecasts what its first sync would do, and opens the referential last:
//
//	dryRunSync ── no referential ──► forecastSync ──► syncFile: stops, question, mapping ──► openReferential ──► postSync

// syncForecast is what the first sync of a referential would do, in the form of a dry run. It leaves out how many sites are placed by
// their address: only the service knows that.
type syncForecast struct {
	Created       int                `json:"crees"`
	Changes       []body.SiteChange  `json:"changes"`
	ActiveBefore  int                `json:"actifs_avant"`
	ActiveAfter   int                `json:"actifs_apres"`
	AccountActive int                `json:"sites_actifs"`
	Capacity      int                `json:"capacite"`
	Ceiling       int                `json:"plafond"`
	Alerts        []body.Alert       `json:"alertes"` // ten of a code at most
	AlertCounts   map[alert.Code]int `json:"alertes_par_code"`
	Refusal       any                `json:"refus,omitempty"`
}

// forecastSync returns what the first sync of the file would do in a referential that does not exist yet. The service checked the form of
// the sites before it reported that; its later checks are made here. Only what others write meanwhile can make the forecast wrong.
func (s session) forecastSync(ctx context.Context, file *importFile, read *sitefile.Import) (raw json.RawMessage, would body.Synced, err error) {
	if err := s.checkReferentialCode(); err != nil {
		return nil, would, err
	}
	if faults := findContentFaults(read.Sites); len(faults) > 0 {
		return nil, would, locateFieldErrors(file.name, read.Sites, faults)
	}
	communes, err := commune.Load()
	if err != nil {
		return nil, would, err
	}
	answer, err := s.client.Get(ctx, "/me", nil)
	if err != nil {
		return nil, would, err
	}
	var me body.Me
	if err := json.Unmarshal(answer, &me); err != nil {
		return nil, would, fmt.Errorf("reading the answer: %w", err)
	}
	if raw, err = json.Marshal(newForecast(me, read.Sites, alert.NewChecker(communes))); err != nil {
		return nil, would, err
	}
	return raw, would, json.Unmarshal(raw, &would)
}

// newForecast is the forecast for an account and the sites of a file.
func newForecast(me body.Me, all []sitefile.Site, checker *alert.Checker) syncForecast {
	f := syncForecast{
		Created: len(all), ActiveAfter: len(all), Capacity: me.Sites.Capacity, Ceiling: me.Sites.Ceiling, AccountActive: valueOf(me.Sites.Active),
		Changes: []body.SiteChange{}, Alerts: []body.Alert{}, AlertCounts: map[alert.Code]int{},
	}
	for _, site := range all {
		f.Changes = append(f.Changes, body.SiteChange{ExternalID: site.ExternalID, Effect: "cree"})
		for _, a := range checker.Check(site.Content, site.Content.OwnPosition()) {
			if f.AlertCounts[a.Code]++; f.AlertCounts[a.Code] <= 10 {
				f.Alerts = append(f.Alerts, body.Alert{Code: string(a.Code), ExternalID: site.ExternalID, Message: a.Message})
			}
		}
	}
	slices.SortFunc(f.Changes, func(a, b body.SiteChange) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	switch active := valueOf(me.Referentials.Active); {
	case active >= me.Referentials.Maximum:
		f.Refusal = body.ReferentialsOverCapacity{Code: string(refusal.ReferentialsOverCapacity), Active: active, Maximum: me.Referentials.Maximum}
	case f.AccountActive+len(all) > f.Ceiling:
		f.Refusal = body.SitesOverCapacity{Code: string(refusal.SitesOverCapacity), Active: f.AccountActive, Capacity: f.Capacity, Ceiling: f.Ceiling}
	}
	return f
}

// valueOf returns a count of an account, 0 if it is unknown.
func valueOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// checkReferentialCode refuses a code that no referential can have.
func (s session) checkReferentialCode() error {
	text, err := json.Marshal(body.OpenReferential{Code: s.String("referential")})
	if err != nil {
		return err
	}
	_, err = kit.NewDecoder[body.OpenReferential]().DecodeText(text)
	if p, ok := errors.AsType[problem.Problem](err); ok {
		if failure, ok := p.Body.(body.RuleFailure); ok {
			return fmt.Errorf("--referential: %s\nnothing was written", failure.Detail[0].Msg)
		}
	}
	return err
}

// findContentFaults finds the members of sites that the service refuses when it writes them. A file that an export was made of keeps its
// values as they are; of any other what breaks these rules is kept in proprietes.
func findContentFaults(all []sitefile.Site) (faults []adminclient.FieldError) {
	for i, site := range all {
		for _, f := range site.Content.FindFaults() {
			if faults = append(faults, adminclient.FieldError{Loc: []any{"body", "sites", float64(i), f.Member}, Msg: f.Rule}); len(faults) == problem.MaxViolations {
				return faults
			}
		}
	}
	return faults
}

// printOpening prints that the referential would be opened, and how many sites the service would place by their address.
func (s session) printOpening(read *sitefile.Import) error {
	if s.Bool("json") {
		return nil
	}
	unplaced := 0
	for _, site := range read.Sites {
		if site.Content.OwnPosition() == nil {
			unplaced++
		}
	}
	return s.PrintLine("there is no referential %s yet: it would be opened%s", terminal.SanitizeText(s.String("referential")),
		terminal.EmptyIf(unplaced == 0, fmt.Sprintf("; %s places have no position and would be placed by their address where it is found", terminal.GroupThousands(unplaced))))
}

// writeFirstSync opens the referential and writes the sites of a file. If the second step fails, the referential stays open and the error
// says so.
func (s session) writeFirstSync(ctx context.Context, file *importFile, read *sitefile.Import) (json.RawMessage, error) {
	code := s.String("referential")
	if _, err := s.client.Post(ctx, "/locations/referentiels", body.OpenReferential{Code: code}); err != nil {
		return nil, err
	}
	raw, _, err := s.postSync(ctx, file.name, read, false)
	if err != nil {
		err = fmt.Errorf("%w\nthe referential %s was opened before that, and stays", err, code)
	}
	return raw, err
}
