"""Lists the words for a password in many languages."""

from tarsy.masking.rules.parts import spellings

ASCII = (
    rb"passwort|kennwort|passwoord|wachtwoord|passord|adgangskode|contrase(?:n|ny)a|contrasinal|mot[ _-]?de[ _-]?passe"
    rb"|palavra[ _-]?passe|senha|parola|haslo|heslo|geslo|lozinka|losenord|salasana|parool|jelszo|sifre|pasahitza"
    rb"|kata[ _]?sandi|mat[ _]khau"
)
"""Case-insensitive alternatives."""

OTHER = spellings(
    (
        "contraseña", "lösenord", "hasło", "şifre", "jelszó", "slaptažodis", "mật khẩu", "пароль", "парола", "лозинка",
        "κωδικός", "κωδικος", "συνθηματικό", "סיסמה", "סיסמא", "كلمة المرور", "كلمة السر", "رمز عبور", "گذرواژه",
        "पासवर्ड", "รหัสผ่าน", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "패스워드",
    )
)  # fmt: skip
