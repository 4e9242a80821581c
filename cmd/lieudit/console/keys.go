package console

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/token"
)

func (p Program) keys() *cli.Command {
	return group("key", "Issue, list and revoke API keys, change their origins",
		p.keyIssue(), p.keyList(), p.keyRevoke(), p.keyOrigins())
}

func (p Program) keyIssue() *cli.Command {
	return &cli.Command{
		Name:      "issue",
		Usage:     "Issue an API key",
		ArgsUsage: "ACCOUNT",
		Description: `A secret key is shown this once. Piped, it prints the key alone.

  lieudit key issue mende --label "shop backend"
  lieudit key issue mende --kind publishable --origin https://www.mende.fr --origin 'https://*.mende.fr'
  KEY=$(lieudit key issue mende)`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "kind", Value: string(token.Secret), Usage: "`KIND`: secret, for a server, or publishable, for a web page", Validator: oneOf(string(token.Secret), string(token.Publishable))},
			&cli.StringFlag{Name: "label", Value: "issued from the command line", Usage: "`WHAT` it is for"},
			&cli.StringSliceFlag{Name: "origin", Usage: "`ORIGIN` a publishable key answers to, https://domain or https://*.domain; up to 10 of them"},
		),
		Action: p.visiting(issueKey),
	}
}

func issueKey(ctx context.Context, v visit) error {
	raw, err := v.api.Post(ctx, backoffice.Path("", "accounts", v.Args().First(), "keys"), body.IssueKey{
		Kind:    token.Kind(strings.ToLower(v.String("kind"))),
		Label:   v.String("label"),
		Origins: v.StringSlice("origin"),
	})
	if err != nil {
		return err
	}
	return one(v, raw, v.keyIssued)
}

func (v visit) keyIssued(k body.Key) error {
	v.warn(k.Warnings)
	if !v.Terminal {
		return v.say("%s", k.Token)
	}
	advice := "This is the only time it is shown. Keep it on a server."
	if k.Kind == token.Publishable {
		advice = "It may stand in a web page of " + strings.Join(k.Origins, ", ") + "."
	}
	return v.say("%s key %s (%s):\n\n  %s\n\n%s", k.Kind, k.ID, clean(k.Label), k.Token, clean(advice))
}

func (v visit) warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(v.Err, "warning: "+clean(w))
	}
}

func (p Program) keyList() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "List an account's keys, revoked ones too",
		ArgsUsage: "ACCOUNT",
		Flags:     p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			return many(ctx, v, backoffice.Path("", "accounts", v.Args().First(), "keys"), nil, keyHeads(), v.keyRow)
		}),
	}
}

func keyHeads() []string {
	return []string{"ID", "KIND", "KEY", "LABEL", "ISSUED", "BY", "LAST USED", "REVOKED", "REASON", "ORIGINS"}
}

func (v visit) keyRow(k body.Key) []string {
	return []string{
		k.ID, string(k.Kind), k.Hint, k.Label, v.short(k.Created), k.CreatedBy,
		v.short(k.Used), v.short(k.Revoked), k.Reason, strings.Join(k.Origins, " "),
	}
}

func (p Program) keyRevoke() *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		Usage:       "Revoke a key: within a second it works nowhere",
		ArgsUsage:   "ACCOUNT KEY",
		Description: `  lieudit key revoke mende KEY --reason leak`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "reason", Required: true, Usage: "`WHY`, for the audit trail: leak, rotation, offboarding…"},
		),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			path := backoffice.Path("revoke", "accounts", v.Args().Get(0), "keys", v.Args().Get(1))
			raw, err := v.api.Post(ctx, path, body.RevokeKey{Reason: v.String("reason")})
			if err != nil {
				return err
			}
			return one(v, raw, v.key)
		}),
	}
}

func (v visit) key(k body.Key) error {
	v.warn(k.Warnings)
	return v.record(
		"key", k.ID,
		"kind", string(k.Kind),
		"begins and ends", k.Hint,
		"label", k.Label,
		"origins", strings.Join(k.Origins, " "),
		"issued", v.by(v.short(k.Created), k.CreatedBy),
		"revoked", v.by(v.short(k.Revoked), k.RevokedBy),
		"reason", k.Reason,
	)
}

func (v visit) by(when, who string) string {
	if when == "" || who == "" {
		return when
	}
	return when + " by " + who
}

func (p Program) keyOrigins() *cli.Command {
	return &cli.Command{
		Name:      "origins",
		Usage:     "Replace the origins of a publishable key; the key stays the same",
		ArgsUsage: "ACCOUNT KEY ORIGIN...",
		Description: `Up to 10 origins of the form https://domain or https://*.domain.

  lieudit key origins mende KEY https://www.mende.fr 'https://*.mende.fr'`,
		Flags: p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			words := v.Args().Slice()
			raw, err := v.api.Put(ctx, backoffice.Path("", "accounts", words[0], "keys", words[1], "origins"), body.ChangeOrigins{Origins: words[2:]})
			if err != nil {
				return err
			}
			return one(v, raw, v.key)
		}),
	}
}
