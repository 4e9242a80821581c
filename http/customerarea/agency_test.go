package customerarea

import (
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/schemas/event"
)

// A join that is withdrawn before it begins is over at the time of the instance that withdrew it, whose clock may be ahead.
func TestANextAgencyIsShownOnlyIfItDiffersFromTheAgency(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	period, now, ahead := opened.AddDate(0, 1, 0), opened.AddDate(0, 0, 5), opened.AddDate(0, 0, 5).Add(150*time.Second)
	joined := event.AgencyJoined{Agency: "agency", Effective: period}
	for name, test := range map[string]struct {
		history []commands.Record
		at      time.Time
		want    string // "" for nothing
	}{
		"none":                      {nil, now, ""},
		"joined":                    {[]commands.Record{{Event: joined, At: opened}}, now, `"agency" 2026-12-02`},
		"joined, and begun":         {[]commands.Record{{Event: joined, At: opened}}, period, ""},
		"withdrawn":                 {[]commands.Record{{Event: joined, At: opened}, {Event: event.AgencyLeft{Agency: "agency", Effective: now}, At: now}}, now, ""},
		"withdrawn by a fast clock": {[]commands.Record{{Event: joined, At: opened}, {Event: event.AgencyLeft{Agency: "agency", Effective: ahead}, At: now}}, now, ""},
		"left": {[]commands.Record{
			{Event: event.AgencyJoined{Agency: "agency", Effective: opened}, At: opened}, {Event: event.AgencyLeft{Agency: "agency", Effective: period}, At: now},
		}, now, `"" 2026-12-02`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s account.State
			account.Evolve(&s, commands.Record{Event: event.AccountOpened{Account: "a"}, At: opened})
			for _, r := range test.history {
				account.Evolve(&s, r)
			}
			got := ""
			if next := toNextAgency(&s, test.at); next != nil {
				got = `"` + next.Agency + `" ` + next.Effective.Format(time.DateOnly)
			}
			if got != test.want {
				t.Errorf("shown: %s, want %s", got, test.want)
			}
		})
	}
}
