package refusals

import (
	"lieudit/http/pages/i18n"
	"lieudit/schemas/refusal"
)

// table has an advice for each code, in the order of codes.go.
var table = map[refusal.Code]Advice{
	refusal.RequestMalformed: {
		Cause: i18n.Text{FR: "Il manque un paramètre obligatoire, un texte est vide ou trop long, ou le corps n’est pas du JSON lisible", EN: "A required parameter is missing, a text is empty or too long, or the body is not readable JSON"},
		Cure:  i18n.Text{FR: "Comparez la requête à l’exemple de l’opération. Ces réponses ne comptent pas dans le quota.", EN: "Compare the request with the operation’s example. These answers do not count against the quota."},
	},

	refusal.KeyRequired: {
		Cause: i18n.Text{FR: "L’en-tête Authorization est absent, ou n’a pas la forme « Bearer CLÉ »", EN: "The Authorization header is absent, or not of the form “Bearer KEY”"},
		Cure:  i18n.Text{FR: "Envoyez « Authorization: Bearer CLÉ » avec chaque requête. Il n’y a ni cookie ni paramètre pour la clé.", EN: "Send “Authorization: Bearer KEY” with each request. There is no cookie and no parameter for the key."},
	},
	refusal.KeyInvalid: {
		Cause: i18n.Text{FR: "La clé est mal recopiée, inconnue ou révoquée, ou son compte est fermé", EN: "The key is mistyped, unknown or revoked, or its account is closed"},
		Cure:  i18n.Text{FR: "Vérifiez qu’elle est entière, sans espace ni guillemet. Sinon, créez-en une autre dans l’espace client.", EN: "Check that it is whole, without spaces or quotes. Otherwise create another one in the customer area."},
		what:  i18n.Text{FR: "Votre session est terminée", EN: "Your session has ended"},
		do:    i18n.Text{FR: "Connectez-vous de nouveau, puis réessayez : ce que vous aviez écrit est gardé ici.", EN: "Sign in again, then try again: what you had written is kept here."},
	},

	refusal.LinkInvalid: {
		Cause: i18n.Text{FR: "Ce lien ou ce jeton ne permet pas d’entrer", EN: "This link or token does not let you in"},
		Cure:  i18n.Text{FR: "Un lien sert une seule fois et pour peu de temps. Demandez-en un autre, ou collez un jeton d’accès.", EN: "A link works once, and for a short time. Ask for another one, or paste an access token."},
	},

	refusal.PlanInsufficient: {
		Cause: i18n.Text{FR: "La clé est valable, mais l’offre du compte ne comprend pas cette opération", EN: "The key is valid, but the account’s plan does not include this operation"},
		Cure:  i18n.Text{FR: "La page de chaque opération dit quelles offres la comprennent. Demandez à changer d’offre : une offre supérieure agit aussitôt.", EN: "Each operation’s page tells which plans include it. Ask for another plan: a larger one acts at once."},
	},
	refusal.RoleForbidden: {
		Cause: i18n.Text{FR: "Le rôle de cet accès ne permet pas l’opération", EN: "The role of this access does not allow the operation"},
		Cure:  i18n.Text{FR: "La réponse nomme les rôles qui le permettent. Demandez-en un à l’opérateur du service.", EN: "The answer names the roles that do. Ask the operator of the service for one."},
		what:  i18n.Text{FR: "Votre accès ne permet pas cela", EN: "Your access does not allow this"},
		do:    i18n.Text{FR: "Demandez à l’opérateur du service un accès qui le permet.", EN: "Ask the operator of the service for an access that does."},
	},
	refusal.KeyOutOfScope: {
		Cause: i18n.Text{FR: "Une clé publiable n’ouvre que GET /locations/search, et ce chemin exactement", EN: "A publishable key opens GET /locations/search only, and that path exactly"},
		Cure:  i18n.Text{FR: "Faites les autres appels depuis votre serveur, avec une clé secrète.", EN: "Make all other calls from your server, with a secret key."},
	},
	refusal.OriginMissing: {
		Cause: i18n.Text{FR: "La clé publiable a servi sans en-tête Origin : ce n’est pas une page web qui appelle", EN: "The publishable key came without an Origin header: the caller is not a web page"},
		Cure:  i18n.Text{FR: "Depuis un serveur ou un terminal, utilisez une clé secrète. Pour un essai, envoyez l’en-tête Origin d’une page déclarée.", EN: "From a server or a terminal, use a secret key. To try it out, send the Origin header of a declared page."},
	},
	refusal.OriginNotAllowed: {
		Cause: i18n.Text{FR: "L’origine de la page n’est pas parmi celles que déclare la clé publiable", EN: "The page’s origin is not among those that the publishable key declares"},
		Cure:  i18n.Text{FR: "Ajoutez-la aux domaines de la clé dans l’espace client, où vous pouvez aussi tester une origine. Un joker (https://*.exemple.fr) ne couvre pas le domaine nu.", EN: "Add it to the key’s domains in the customer area, where you can also test an origin. A wildcard (https://*.example.fr) does not cover the bare domain."},
	},

	refusal.ForeignPage: {
		Cause: i18n.Text{FR: "Cette demande vient d’un autre site", EN: "This request came from another site"},
		Cure:  i18n.Text{FR: "Rien n’a été fait. Repartez de l’accueil.", EN: "Nothing was done. Start again from the home page."},
	},
	refusal.LoginUnencrypted: {
		Cause: i18n.Text{FR: "La connexion n’est pas chiffrée : aucun navigateur ne garderait la session", EN: "The connection is not encrypted: no browser would keep the session"},
		Cure:  i18n.Text{FR: "Passez par https, ou par http://localhost sur la machine du service (serve --area-url).", EN: "Use https, or http://localhost on the machine of the service (serve --area-url)."},
	},
	refusal.TooManyLogins: {
		Cause: i18n.Text{FR: "Trop d’essais de connexion", EN: "Too many attempts to sign in"},
		Cure:  i18n.Text{FR: "Attendez une minute, puis réessayez.", EN: "Wait a minute, then try again."},
	},

	refusal.NotFound: {
		Cause: i18n.Text{FR: "Le chemin n’existe pas, ou rien ne porte cet identifiant dans votre compte", EN: "There is no such path, or nothing has that id in your account"},
		Cure:  i18n.Text{FR: "Les chemins se comparent exactement : majuscules, barre finale et barres doubles comptent. Un identifiant d’adresse peut changer d’un millésime à l’autre : gardez id_ban.", EN: "Paths are compared exactly: capitals, a trailing slash and double slashes matter. The id of an address may change between vintages: keep id_ban."},
		what:  i18n.Text{FR: "Cette page n’existe pas", EN: "There is no such page"},
		do:    i18n.Text{FR: "L’adresse est peut-être incomplète, ou ce qu’elle montrait n’est pas à vous.", EN: "The address may be incomplete, or what it showed is not yours."},
	},
	refusal.MethodNotAllowed: {
		Cause: i18n.Text{FR: "Le chemin existe, mais pas avec cette méthode", EN: "The path exists, but not with this method"},
		Cure:  i18n.Text{FR: "L’en-tête Allow de la réponse donne les méthodes possibles.", EN: "The Allow header of the answer has the methods that do."},
		what:  i18n.Text{FR: "Cette page ne se demande pas ainsi", EN: "This page cannot be asked for like that"},
		do:    i18n.Text{FR: "Repartez de l’accueil.", EN: "Start again from the home page."},
	},
	refusal.Misdirected: {
		Cause: i18n.Text{FR: "Ce n’est pas l’adresse de ces pages", EN: "This is not the address of these pages"},
		Cure:  i18n.Text{FR: "Elles sont à une autre adresse : suivez le lien ci-dessous.", EN: "They are at another address: follow the link below."},
	},

	refusal.ReferentialCodeTaken: {
		Cause: i18n.Text{FR: "Un référentiel de votre compte porte déjà ce code ; archivé, il le garde", EN: "A referential of your account already has this code; it keeps it when archived"},
		Cure:  i18n.Text{FR: "Choisissez un autre code, ou continuez avec le référentiel existant.", EN: "Choose another code, or go on with the existing referential."},
	},
	refusal.ReferentialArchived: {
		Cause: i18n.Text{FR: "Le référentiel est archivé : il se lit, il ne s’écrit plus", EN: "The referential is archived: it can be read, and no longer written"},
		Cure:  i18n.Text{FR: "Ouvrez un référentiel sous un autre code, et synchronisez-y les sites.", EN: "Open a referential under another code, and sync the sites to it."},
	},
	refusal.SitesOverCapacity: {
		Cause: i18n.Text{FR: "L’écriture laisserait plus de sites actifs que le plafond, qui est la capacité de l’offre et un dixième", EN: "The write would leave more active sites than the ceiling, which is the plan’s capacity and a tenth of it"},
		Cure:  i18n.Text{FR: "La même requête échouera encore. Désactivez des sites, ou passez à une offre supérieure. Les sites inactifs ne comptent pas.", EN: "The same request will fail again. Deactivate sites, or move to a larger plan. Inactive sites do not count."},
	},
	refusal.ReferentialsOverCapacity: {
		Cause: i18n.Text{FR: "Tous les référentiels actifs de l’offre sont pris, sans tolérance", EN: "All active referentials of the plan are in use; there is no tolerance"},
		Cure:  i18n.Text{FR: "Archivez-en un, ou passez à une offre supérieure. Changer de code n’y fait rien.", EN: "Archive one, or move to a larger plan. Another code does not help."},
	},
	refusal.SuspiciousReduction: {
		Cause: i18n.Text{FR: "La synchronisation désactiverait plus de la moitié des sites actifs : souvent un fichier tronqué", EN: "The sync would deactivate more than half of the active sites: often a truncated file"},
		Cure:  i18n.Text{FR: "Vérifiez que la liste est complète. Si la réduction est voulue, renvoyez-la avec confirmer_reduction à true.", EN: "Check that the list is complete. If the reduction is meant, send it again with confirmer_reduction set to true."},
	},
	refusal.IdempotencyMismatch: {
		Cause: i18n.Text{FR: "Cette Idempotency-Key a déjà servi depuis moins de 24 heures, pour une autre requête", EN: "This Idempotency-Key was used within the last 24 hours, for another request"},
		Cure:  i18n.Text{FR: "Prenez une nouvelle clé d’idempotence pour chaque écriture, et la même pour la renvoyer.", EN: "Take a new idempotency key for each write, and the same one to send it again."},
	},

	refusal.KeysOverCapacity: {
		Cause: i18n.Text{FR: "Les clés publiables de l’offre sont toutes prises, ou elle n’en comprend pas (plafond à 0)", EN: "The plan’s publishable keys are all in use, or it includes none (plafond is 0)"},
		Cure:  i18n.Text{FR: "Révoquez une clé publiable qui ne sert plus, ou passez à une offre supérieure.", EN: "Revoke a publishable key that is no longer used, or move to a larger plan."},
		what:  i18n.Text{FR: "Les clés publiables de votre offre sont toutes prises", EN: "All publishable keys of your plan are in use"},
		do:    i18n.Text{FR: "Révoquez une clé publiable qui ne sert plus, ou passez à une offre supérieure.", EN: "Revoke a publishable key that is no longer used, or move to a larger plan."},
	},
	refusal.AccountExists: {
		Cause: i18n.Text{FR: "Un compte existe déjà sous cet identifiant", EN: "There is an account with this id already"},
		Cure:  i18n.Text{FR: "Choisissez un autre identifiant, ou laissez le service en choisir un.", EN: "Choose another id, or let the service choose one."},
	},
	refusal.AccountClosed: {
		Cause: i18n.Text{FR: "Ce compte est fermé", EN: "This account is closed"},
		Cure:  i18n.Text{FR: "Un compte fermé ne se rouvre pas : ouvrez-en un autre.", EN: "A closed account cannot be opened again: open another one."},
	},
	refusal.AccountOpen: {
		Cause: i18n.Text{FR: "Ce compte est ouvert : seul un compte fermé s’efface", EN: "This account is open: only a closed one can be erased"},
		Cure:  i18n.Text{FR: "Fermez-le d’abord.", EN: "Close it first."},
	},
	refusal.AgencyUnknown: {
		Cause: i18n.Text{FR: "Aucun compte en mode agence ne porte cet identifiant", EN: "No account in agency mode has this id"},
		Cure:  i18n.Text{FR: "Vérifiez l’identifiant, et que ce compte est en mode agence.", EN: "Check the id, and that the account is in agency mode."},
	},
	refusal.AgencyClosed: {
		Cause: i18n.Text{FR: "L’agence de ce compte est fermée : ses clés n’ouvrent rien", EN: "The agency of this account is closed: its keys open nothing"},
		Cure:  i18n.Text{FR: "Demandez à l’opérateur que le compte quitte l’agence.", EN: "Ask the operator to have the account leave the agency."},
	},
	refusal.NestedAgency: {
		Cause: i18n.Text{FR: "Une agence ne peut pas être cliente d’une autre agence", EN: "An agency cannot be the customer of another agency"},
		Cure:  i18n.Text{FR: "Rattachez les comptes directement à une seule agence.", EN: "Let the accounts join one agency directly."},
	},
	refusal.AlreadySubClient: {
		Cause: i18n.Text{FR: "Ce compte a déjà une agence", EN: "This account has an agency already"},
		Cure:  i18n.Text{FR: "Il doit d’abord la quitter, ce qui agit à la période suivante.", EN: "It has to leave it first, which acts at the next period."},
	},
	refusal.NotSubClient: {
		Cause: i18n.Text{FR: "Ce compte n’a pas d’agence", EN: "This account has no agency"},
		Cure:  i18n.Text{FR: "Il n’y a rien à quitter.", EN: "There is nothing to leave."},
	},
	refusal.LeavingUnconfirmed: {
		Cause: i18n.Text{FR: "Le départ d’un client d’agence est confirmé par un opérateur", EN: "An operator confirms that an agency’s customer leaves"},
		Cure:  i18n.Text{FR: "Demandez-le-lui.", EN: "Ask one to."},
	},
	refusal.SubClientLeaving: {
		Cause: i18n.Text{FR: "Ce compte quitte l’agence : ses conditions sont arrêtées", EN: "This account is leaving the agency: its terms are settled"},
		Cure:  i18n.Text{FR: "Attendez la période suivante pour les changer.", EN: "Wait for the next period to change them."},
	},
	refusal.PlanOfAgency: {
		Cause: i18n.Text{FR: "L’offre d’un client d’agence est celle de son agence", EN: "An agency’s customer has the plan of its agency"},
		Cure:  i18n.Text{FR: "Changez l’offre de l’agence, ou seulement le quota de ce compte.", EN: "Change the agency’s plan, or only this account’s quota."},
	},
	refusal.OriginsOnSecretKey: {
		Cause: i18n.Text{FR: "Seule une clé publiable déclare des origines", EN: "Only a publishable key declares origins"},
		Cure:  i18n.Text{FR: "Créez une clé publiable pour ces pages.", EN: "Create a publishable key for these pages."},
	},
	refusal.KeyRevoked: {
		Cause: i18n.Text{FR: "Cette clé est révoquée", EN: "This key is revoked"},
		Cure:  i18n.Text{FR: "Une révocation est définitive : créez une autre clé.", EN: "A revocation is for good: create another key."},
	},
	refusal.KeyReplaced: {
		Cause: i18n.Text{FR: "Une autre clé remplace déjà celle-ci", EN: "Another key takes the place of this one already"},
		Cure:  i18n.Text{FR: "Achevez ce remplacement en révoquant l’ancienne clé, ou abandonnez-le en révoquant la nouvelle.", EN: "Finish that rotation by revoking the old key, or give it up by revoking the new one."},
	},
	refusal.OriginInvalid: {
		Cause: i18n.Text{FR: "Une origine déclarée n’est pas acceptable ; le message la nomme et dit pourquoi", EN: "A declared origin is not acceptable; the message names it and says why"},
		Cure:  i18n.Text{FR: "Une origine s’écrit https://domaine, sans chemin. Un joker se met en tête et garde deux niveaux : https://*.exemple.fr.", EN: "An origin is written https://domain, without a path. A wildcard comes first and keeps two labels: https://*.example.fr."},
	},
	refusal.TooManyOrigins: {
		Cause: i18n.Text{FR: "Une clé publiable déclare au plus 10 origines", EN: "A publishable key declares 10 origins at most"},
		Cure:  i18n.Text{FR: "Regroupez des sous-domaines sous un joker, ou créez une autre clé.", EN: "Join subdomains under a wildcard, or create another key."},
	},
	refusal.TooManySessions: {
		Cause: i18n.Text{FR: "Trop de sessions ouvertes ou de liens en attente", EN: "Too many open sessions or links that were not used"},
		Cure:  i18n.Text{FR: "Fermez-en d’abord, sur la page « Sessions et appareils ».", EN: "Close some first, on the page “Sessions and devices”."},
	},

	refusal.PeriodNotClosed: {
		Cause: i18n.Text{FR: "Cette période n’est pas close", EN: "This period is not closed"},
		Cure:  i18n.Text{FR: "Une période se corrige une heure après sa fin, quand elle est close.", EN: "A period is corrected an hour after its end, once it is closed."},
	},
	refusal.DayOutsidePeriod: {
		Cause: i18n.Text{FR: "Ce jour n’est pas dans la période", EN: "This day is not in the period"},
		Cure:  i18n.Text{FR: "Choisissez un jour de la période, à l’heure de Paris.", EN: "Choose a day of the period, in Paris time."},
	},
	refusal.AccountNotInContract: {
		Cause: i18n.Text{FR: "Ce compte n’a rien consommé sur ce contrat pendant la période", EN: "This account used nothing under this contract in the period"},
		Cure:  i18n.Text{FR: "Vérifiez le compte, l’agence et la période.", EN: "Check the account, the agency and the period."},
	},
	refusal.AdjustmentBelowZero: {
		Cause: i18n.Text{FR: "La correction laisserait moins de zéro requête", EN: "The correction would leave fewer than no requests"},
		Cure:  i18n.Text{FR: "Retirez au plus ce que la ligne compte.", EN: "Take away what the line counts at most."},
	},
	refusal.AdjustmentZero: {
		Cause: i18n.Text{FR: "Une correction ajoute ou retire au moins une requête", EN: "A correction adds or takes away one request at least"},
		Cure:  i18n.Text{FR: "Écrivez un nombre autre que zéro.", EN: "Enter a number other than zero."},
	},
	refusal.DiscoveryQuotaSpent: {
		Cause: i18n.Text{FR: "Le quota du mois de l’offre DISCOVERY est atteint", EN: "The monthly quota of the DISCOVERY plan is used up"},
		Cure:  i18n.Text{FR: "Attendez le début de la période suivante (l’espace client en donne la date), ou passez à une offre supérieure, qui agit aussitôt.", EN: "Wait for the next period to begin (the customer area has the date), or move to a larger plan, which acts at once."},
	},
	refusal.QuotaSpent: {
		Cause: i18n.Text{FR: "Le quota de la période est atteint, celui du compte ou celui du contrat de son agence", EN: "The quota of the period is used up: the account’s, or that of its agency’s contract"},
		Cure:  i18n.Text{FR: "Attendez le début de la période suivante (l’espace client en donne la date), ou faites relever le quota.", EN: "Wait for the next period to begin (the customer area has the date), or have the quota raised."},
	},
	refusal.Throttled: {
		Cause: i18n.Text{FR: "Une clé publiable a servi trop vite depuis une même adresse IP. La réponse n’a pas de corps ni d’en-tête CORS : un script y voit une erreur de réseau", EN: "A publishable key was used too fast from one IP address. The answer has no body and no CORS header: a script sees a network error"},
		Cure:  i18n.Text{FR: "Le rythme permis est de 20 requêtes par seconde, par rafales de 100. Cherchez après une pause de frappe, non à chaque lettre.", EN: "The pace allowed is 20 requests a second, in bursts of 100. Search after a pause in typing, not at each letter."},
	},

	refusal.BodyTooLarge: {
		Cause: i18n.Text{FR: "Le corps dépasse la limite : 64 Mio pour sites:sync et sites:upsert, 50 Mio pour un fichier CSV, 1 Mio ailleurs", EN: "The body is over the limit: 64 MiB for sites:sync and sites:upsert, 50 MiB for a CSV file, 1 MiB elsewhere"},
		Cure:  i18n.Text{FR: "Envoyez les sites en plusieurs sites:upsert, ou le fichier en plusieurs morceaux.", EN: "Send the sites in several sites:upsert, or the file in several parts."},
	},
	refusal.AddressUnparsable: {
		Cause: i18n.Text{FR: "Rien dans le texte n’est un numéro, une voie, un code postal ou une commune", EN: "Nothing in the text is a number, a street, a postcode or a commune"},
		Cure:  i18n.Text{FR: "Faites corriger la saisie. Une adresse lisible mais absente de la base répond 200 avec no_results.", EN: "Have the input corrected. An address that can be read but is not in the base answers 200 with no_results."},
	},
	refusal.AddressUnresolved: {
		Cause: i18n.Text{FR: "L’adresse qui sert de centre, d’étape ou de borne ne mène à aucune adresse sûre", EN: "The address that is a centre, a stop or a bound leads to no certain address"},
		Cure:  i18n.Text{FR: "Vérifiez-la d’abord avec /address/verify, faites choisir l’usager, puis envoyez l’id_ban retenu. Une position passe toujours.", EN: "Verify it first with /address/verify, let the user choose, then send the id_ban that was chosen. A position always works."},
	},
	refusal.CursorExpired: {
		Cause: i18n.Text{FR: "Le curseur est trop ancien : la suite des changements n’est plus connue", EN: "The cursor is too old: the changes after it are no longer known"},
		Cure:  i18n.Text{FR: "Reprenez sans curseur : vous recevez tout, une fois, puis les changements.", EN: "Begin again without a cursor: you get everything once, then the changes."},
	},

	refusal.Internal: {
		Cause: i18n.Text{FR: "Une panne du service. La requête n’est pas en cause, et ne compte pas", EN: "A failure of the service. It is not the request’s fault, and the request does not count"},
		Cure:  i18n.Text{FR: "Réessayez avec des pauses croissantes. Pour une écriture, gardez la même Idempotency-Key.", EN: "Try again with growing pauses. For a write, keep the same Idempotency-Key."},
		what:  i18n.Text{FR: "Une erreur s’est produite", EN: "Something went wrong"},
		do:    i18n.Text{FR: "Elle est notée dans le journal du service. Réessayez ; si elle revient, dites à l’opérateur ce que vous faisiez.", EN: "It is in the log of the service. Try again; if it comes back, tell the operator what you were doing."},
	},
	refusal.RoutingUnavailable: {
		Cause: i18n.Text{FR: "Aucun réseau routier n’est chargé, ou le calcul d’itinéraires ne répond pas", EN: "No road network is loaded, or routing does not answer"},
		Cure:  i18n.Text{FR: "Réessayez avec des pauses croissantes. GET /version dit si un réseau est servi.", EN: "Try again with growing pauses. GET /version tells whether a network is served."},
	},
	refusal.AddressUnavailable: {
		Cause: i18n.Text{FR: "Aucun millésime de la base d’adresses n’est chargé", EN: "No vintage of the address base is loaded"},
		Cure:  i18n.Text{FR: "Réessayez avec des pauses croissantes. GET /version dit si une base est servie.", EN: "Try again with growing pauses. GET /version tells whether a base is served."},
	},
	refusal.ReadModelBehind: {
		Cause: i18n.Text{FR: "La liste ne montre pas encore vos dernières écritures, et l’export doit les contenir", EN: "The list does not show your last writes yet, and the export has to hold them"},
		Cure:  i18n.Text{FR: "Réessayez après quelques secondes.", EN: "Try again after a few seconds."},
	},
	refusal.Overloaded: {
		Cause: i18n.Text{FR: "Trop de requêtes coûteuses à la fois : celle-ci a attendu 30 s sans trouver de place", EN: "Too many costly requests at once: this one waited 30 s without finding room"},
		Cure:  i18n.Text{FR: "Réessayez avec des pauses croissantes, et envoyez moins de grandes requêtes en parallèle.", EN: "Try again with growing pauses, and send fewer large requests in parallel."},
	},
	refusal.UpgradeUnfinished: {
		Cause: i18n.Text{FR: "La mise à niveau du service n’est pas achevée : cela n’est pas encore possible", EN: "The upgrade of the service is not finished: this is not possible yet"},
		Cure:  i18n.Text{FR: "L’opérateur l’achève par « lieudit upgrade finish ».", EN: "The operator finishes it with “lieudit upgrade finish”."},
	},
	refusal.UpgradeBlocked: {
		Cause: i18n.Text{FR: "Une instance tourne encore avec un programme trop ancien", EN: "An instance still runs a program that is too old"},
		Cure:  i18n.Text{FR: "Mettez à niveau ou arrêtez les instances que la réponse nomme.", EN: "Upgrade or stop the instances that the answer names."},
	},
	refusal.AuthUnavailable: {
		Cause: i18n.Text{FR: "Les clés ne peuvent pas être vérifiées en ce moment ; le service préfère ne rien servir", EN: "Keys cannot be checked at the moment; the service rather serves nothing"},
		Cure:  i18n.Text{FR: "Cela dure en général une seconde. Réessayez avec des pauses croissantes : rien n’a été compté.", EN: "It usually lasts a second. Try again with growing pauses: nothing was counted."},
		what:  i18n.Text{FR: "Le service ne peut pas répondre en ce moment", EN: "The service cannot answer at the moment"},
		do:    i18n.Text{FR: "Rien n’a été fait ni perdu. Réessayez dans un instant : ce que vous aviez écrit est gardé ici.", EN: "Nothing was done and nothing is lost. Try again in a moment: what you had written is kept here."},
	},
}
