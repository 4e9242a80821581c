package console

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
)

func (p Program) tokens() *cli.Command {
	return group("token", "Issue, list and revoke tokens of the customer area",
		p.tokenIssue(), p.tokenList(), p.tokenRevoke())
}

func roles() []string {
	var out []string
	for _, r := range []grant.Role{grant.Operator, grant.Customer, grant.Agency, grant.Billing, grant.Auditor} {
		out = append(out, string(r))
	}
	return out
}

func (p Program) tokenIssue() *cli.Command {
	return &cli.Command{
		Name:  "issue",
		Usage: "Issue a customer-area token",
		Description: `It is shown this once. Piped, it prints the token alone.

  lieudit token issue --role customer --account mende --label "Mairie de Mende"
  lieudit token issue --role auditor --label "audit 2026" > auditor-token`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "role", Required: true, Usage: "`ROLE`: " + strings.Join(roles(), ", "), Validator: oneOf(roles()...)},
			&cli.StringFlag{Name: "account", Usage: "`ID` of the account the roles customer and agency act for"},
			&cli.StringFlag{Name: "label", Value: "issued from the command line", Usage: "`WHAT` it is for"},
		),
		Action: p.visiting(issueToken),
	}
}

func issueToken(ctx context.Context, v visit) error {
	raw, err := v.api.Post(ctx, "/tokens", body.IssueToken{
		Role:    grant.Role(strings.ToLower(v.String("role"))),
		Account: v.String("account"),
		Label:   v.String("label"),
	})
	if err != nil {
		return err
	}
	return one(v, raw, v.tokenIssued)
}

func (v visit) tokenIssued(t body.AreaToken) error {
	if !v.Terminal {
		return v.say("%s", t.Token)
	}
	return v.say("%s token %s (%s):\n\n  %s\n\nThis is the only time it is shown.", t.Role, t.ID, clean(t.Label), t.Token)
}

func (p Program) tokenList() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the customer-area tokens, revoked ones too",
		Flags: p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			heads := []string{"ID", "ROLE", "ACCOUNT", "TOKEN", "LABEL", "ISSUED", "BY", "REVOKED", "REASON"}
			return many(ctx, v, "/tokens", nil, heads, v.tokenRow)
		}),
	}
}

func (v visit) tokenRow(t body.AreaToken) []string {
	return []string{
		t.ID, string(t.Role), t.Account, t.Hint, t.Label,
		v.short(t.Created), t.CreatedBy, v.short(t.Revoked), t.Reason,
	}
}

func (p Program) tokenRevoke() *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		Usage:       "Revoke a customer-area token",
		ArgsUsage:   "ID",
		Description: `  lieudit token revoke ID --reason offboarding`,
		Flags:       p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`, for the audit trail"}),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			raw, err := v.api.Post(ctx, backoffice.Path("revoke", "tokens", v.Args().First()), body.RevokeToken{Reason: v.String("reason")})
			if err != nil {
				return err
			}
			return one(v, raw, v.areaToken)
		}),
	}
}

func (v visit) areaToken(t body.AreaToken) error {
	return v.record(
		"token", t.ID,
		"role", string(t.Role),
		"account", t.Account,
		"begins and ends", t.Hint,
		"label", t.Label,
		"issued", v.by(v.short(t.Created), t.CreatedBy),
		"revoked", v.by(v.short(t.Revoked), t.RevokedBy),
		"reason", t.Reason,
	)
}
