package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
)

func (p Program) audit() *cli.Command {
	return group("audit", "What happened to an account, and how it stood at any instant",
		p.auditLog(), p.auditState())
}

// accountFlag lets the account of an audit be named by a flag as well as by the argument.
func accountFlag() cli.Flag {
	return &cli.StringFlag{Name: "account", Usage: "`ID` of the account, in place of the argument"}
}

// subject is the account an audit is about.
func (v visit) subject() (string, error) {
	named, word := v.String("account"), v.Args().First()
	switch {
	case named == "" && word == "":
		return "", wrong(v.Command, "ACCOUNT is missing: %s ACCOUNT", v.FullName())
	case named != "" && word != "" && named != word:
		return "", wrong(v.Command, "two accounts are named: %s and %s", word, named)
	case named != "":
		return named, nil
	}
	return word, nil
}

func (p Program) auditLog() *cli.Command {
	return &cli.Command{
		Name:      "log",
		Usage:     "Tell an account's history in sentences, oldest first",
		ArgsUsage: "[ACCOUNT]",
		Description: instantHelp + `

  lieudit audit log mende
  lieudit audit log --account mende --kind keys --from 2026-11-01 --to 2026-12-01
  lieudit audit log mende --kind sites --subject magasins/paris-1
  lieudit audit log mende --json > mende.ndjson`,
		Flags: p.areaFlags(
			accountFlag(),
			&cli.StringFlag{Name: "kind", Usage: "`KIND`: keys or sites, only what concerns them", Validator: oneOf("keys", "sites")},
			&cli.StringFlag{Name: "subject", Usage: "only what is about `SUBJECT`: the id of a key, the code of a referential, or code/external_id for a site"},
			&cli.StringFlag{Name: "from", Usage: "nothing before this `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "only what is before this `TIME`"},
		),
		Action: p.visiting(auditLog),
	}
}

func auditLog(ctx context.Context, v visit) error {
	account, err := v.subject()
	if err != nil {
		return err
	}
	query, err := v.interval()
	if err != nil {
		return err
	}
	for flag, parameter := range map[string]string{"kind": "kind", "subject": "sujet"} {
		if value := v.String(flag); value != "" {
			query.Set(parameter, value)
		}
	}
	for raw, err := range v.api.List(ctx, backoffice.Path("", "accounts", account, "history"), query) {
		if err != nil {
			return err
		}
		if err := one(v, raw, v.sentence); err != nil {
			return err
		}
	}
	return nil
}

// interval is the query of --from and --to.
func (v visit) interval() (url.Values, error) {
	query := url.Values{}
	for _, name := range []string{"from", "to"} {
		t, err := v.instant(v.String(name))
		if err != nil {
			return nil, wrong(v.Command, "--%s: %v", name, err)
		}
		if !t.IsZero() {
			query.Set(name, t.Format(time.RFC3339Nano))
		}
	}
	return query, nil
}

func (v visit) sentence(i body.Incident) error {
	text := i.Sentence + ", by " + i.Author
	if i.For != "" {
		text += " for " + i.For
	}
	if i.Reason != "" {
		text += fmt.Sprintf(" (%s)", i.Reason)
	}
	return v.say("%s  %s", v.exact(i.At), clean(text))
}

func (p Program) auditState() *cli.Command {
	return &cli.Command{
		Name:      "state",
		Usage:     "Show an account and its valid keys as the log says they stood at an instant",
		ArgsUsage: "[ACCOUNT]",
		Description: instantHelp + `

  lieudit audit state mende
  lieudit audit state --account mende --as-of "2026-11-21 12:25"`,
		Flags: p.areaFlags(
			accountFlag(),
			&cli.StringFlag{Name: "as-of", Usage: "the `TIME`; now when left out"},
		),
		Action: p.visiting(auditState),
	}
}

func auditState(ctx context.Context, v visit) error {
	account, err := v.subject()
	if err != nil {
		return err
	}
	at, err := v.instant(v.String("as-of"))
	if err != nil {
		return wrong(v.Command, "--as-of: %v", err)
	}
	query := url.Values{}
	if !at.IsZero() {
		query.Set("as_of", at.Format(time.RFC3339Nano))
	}
	var raw json.RawMessage
	if raw, err = v.api.Get(ctx, backoffice.Path("", "accounts", account, "state"), query); err != nil {
		return err
	}
	return one(v, raw, v.state)
}

func (v visit) state(s body.State) error {
	err := v.record(
		"account", s.Account,
		"as of", v.exact(s.AsOf),
		"name", s.Name,
		"plan", string(s.Plan),
		"quota", fmt.Sprintf("%d requests a month", s.Quota),
		"first period", s.Start.String(),
		"agency", agencyOf(s.IsAgency, s.Agency),
		"next", v.next(s.Next),
		"opened", v.short(s.Created),
		"closed", v.short(s.Closed),
		"log position", fmt.Sprint(s.Position),
	)
	if err != nil {
		return err
	}
	if len(s.Keys) == 0 {
		return v.say("\nNo valid key.")
	}
	t := table{{"KEY", "KIND", "BEGINS AND ENDS", "LABEL", "ISSUED", "BY", "ORIGINS"}}
	for _, k := range s.Keys {
		row := v.keyRow(k)
		t = append(t, append(row[:6:6], row[9]))
	}
	if err := v.say("\nValid keys:"); err != nil {
		return err
	}
	return v.table(t)
}
