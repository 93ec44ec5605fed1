//! How Asian and European services word their errors, beyond what stands with the English of each family.

use super::text;
use crate::rule::{Family, Rule};
use failover_types::FailoverReason::{
    Aborted, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format, ModelNotFound,
    Overloaded, RateLimit, ServerError, SessionExpired,
};

pub(crate) const ROWS: &[Rule] = &[
    text(
        "core/languages-rate",
        Family::Rate,
        RateLimit,
        &[
            "{请求|访问|调用|操作}{速度过快|过快|太快|过频|次数过多}",
            "{リクエスト|呼び出し|利用}{上限|制限|回数}",
            "{리퀘스트|리크에스트} 한도",
            "요청 수를 초과",
            "요청 {한도|제한|횟수} .. 초과",
            "{предел|лимит} {запросов|на запросы}",
            "zu viele {anfragen|aufrufe}",
            "{dépassé|atteint} .. {nombre de requêtes|limite de requêtes|quota}",
            "{superado|excedido|alcanzado} .. {solicitudes|peticiones|cuota}",
            "{excedeu|atingiu} .. {solicitações|requisições|cota}",
        ],
    ),
    text(
        "core/languages-billing",
        Family::Billing,
        Billing,
        &[
            "余额 .. {不足|为零|耗尽|用尽|用完}",
            "账户已透支",
            "{可用|剩余}{额度|余额}{为0|为 0|为零}",
            "请 .. 续费",
            "{残高|クレジット}が{ありません|不足*|なくなりました}",
            "チャージしてください",
            "{크레딧|잔액}을 모두 사용",
            "충전해 주세요",
            "{закончил*|кончил*|исчерпан*} .. {деньги|средства|кредиты|баланс}",
            "недостаточн* {баланс*|средств*|кредит*}",
            "guthaben .. {leer|aufgebraucht|erschöpft|aufladen}",
            "{solde|crédit|crédits} {est|sont} {épuisé*|insuffisant*|négatif*}",
            "{saldo|créditos|crédito} .. {agotado*|insuficiente*|esgotado*|acabaram}",
            "agotado {su|tu|el} {saldo|crédito}",
            "{recargue|recarregue} {su|sua|a} {cuenta|conta}",
            "adicione créditos",
        ],
    )
    .none(&["重置", "后恢复", "充足"]),
    text(
        "core/languages-auth",
        Family::Auth,
        Auth,
        &[
            "{密钥|令牌|凭证|凭据|token} .. {不存在|已失效|无效|过期|已过期|错误}",
            "{トークン|キー|認証}の有効期限",
            "{토큰|키}이 {만료*|유효하지*}",
            "{토큰|키}{이|가} {만료*|유효하지*}",
            "срок действия {токена|ключа}",
            "{schlüssel|token|api schlüssel} {ist|wurde} {ungültig|abgelaufen|falsch}",
            "{clé|jeton} .. {incorrect*|expiré|invalide}",
            "le jeton a expiré",
            "clave .. {no es válida|incorrecta|inválida}",
            "{chave} .. {é inválida|incorreta|expirou}",
            "token {ha caducado|ha expirado|expirou|caducado}",
        ],
    )
    .none(&["会话", "url"]),
    text(
        "core/languages-refusal",
        Family::Refusal,
        ContentRefusal,
        &[
            "{内容|输入|提问} .. {不符合|违反} .. {规范|规定|政策}",
            "敏感{话题|内容|问题}",
            "安全上の理由",
            "안전 .. 차단",
            "{запрос|ответ|контент|сообщение|содержимое|текст} .. заблокирован* .. {безопасност*|фильтр*|правил*}",
            "{anfrage|antwort|inhalt|eingabe|ausgabe|text|prompt} .. sicherheitsgründen",
            "raisons de sécurité .. {bloqué*|refus*}",
            "bloqué* .. raisons de sécurité",
            "bloquead* .. {motivos|razones|razões} de {seguridad|segurança}",
        ],
    )
    .none(&[
        "ip", "账号", "账户", "用户", "konto", "zugang", "benutzer", "compte", "accès", "utilisateur", "cuenta", "acceso", "usuario",
        "conta", "acesso", "аккаунт*", "учетн*", "учётн*", "пользовател*", "アカウント", "アクセス", "계정", "사용자", "account", "access",
    ]),
    text(
        "core/languages-overflow",
        Family::Overflow,
        ContextOverflow,
        &[
            "{对话|会话|聊天|消息|输入}{内容|记录|历史}过长",
            "token{数|数量} .. {超过|超出}",
            "토큰 수 .. 초과",
            "{запрос|промпт|текст|диалог|контекст} слишком {длинный|большой|велик}",
            "{mensaje|mensagem|conversación|conversa} {es|é} {demasiado|muito|muy} {largo|larga|longa|longo}",
            "message {est|est trop} {trop long|long}",
            "{nachricht|unterhaltung} ist zu lang",
        ],
    )
    .none(&["每分钟", "每日", "每天", "每小时", "每月", "频率", "配额", "额度", "速率", "限流", "tpm", "qps"]),
    text(
        "core/languages-overloaded",
        Family::Overloaded,
        Overloaded,
        &["{请求人数|使用人数|访问人数|用户}过多", "{混み合って|混雑し}*"],
    ),
    text(
        "core/languages-model",
        Family::Model,
        ModelNotFound,
        &[
            "模型 .. {停止服务|停用|下线|无访问权限|访问权限|退役}",
            "{没有|无} .. 模型 .. {访问权限|权限}",
            "모델은 더 이상",
            "{такой|такая} модел* нет",
            "модел* .. {не найден*|больше не|нет доступа}",
            "modell .. {nicht mehr|unbekannt}",
            "modèle n'est plus",
            "modelo {ya no|não é mais|não está mais}",
            "modell .. nicht {freigeschaltet|erlaubt|zugelassen|aktiviert|lizenziert|gebucht|vorhanden|freigegeben}",
            "modèle .. {n'est pas|pas} {activé|autorisé|accessible|ouvert|inclus|déployé}",
            "modelo .. no {está|es|se encuentra} {habilitado|permitido|autorizado|activado|incluido|desplegado}",
            "modelo .. não {está|é|foi} {habilitado|permitido|autorizado|liberado|ativado|incluído}",
            "modello .. non {è|risulta} {abilitato|consentito|autorizzato|attivo|incluso}",
            "модел* .. {не подключен*|не разрешен*|не доступн*|не активирован*|не включен*|запрещен*}",
            "{未启用|未授权|未开通|无权使用|不允许使用} .. 模型",
            "模型 .. {未启用|未授权|未激活|不允许|未上线|未订购}",
            "モデル .. {許可されていません|有効になっていません|使用できません|アクセスできません|利用権限がありません}",
            "모델 .. {허용되지|활성화되지|권한이 없|접근할 수 없}*",
        ],
    )
    .none(&["ответ", "antwort"]),
    text(
        "core/languages-format",
        Family::Format,
        Format,
        &[
            "{格式|参数} .. {不正确|错误|不合法|取值范围|无效}",
            "{リクエスト|パラメータ|形式} .. {正しくありません|不正です|無効です}",
            "{요청|매개변수} 형식이 {올바르지|잘못}*",
            "неверный формат",
            "ungültiges format",
            "format .. {invalide|incorrect}",
            "formato .. {no es válido|inválido|incorrecto|incorreto}",
        ],
    )
    .none(&["密钥", "令牌", "api"]),
    text(
        "core/languages-empty",
        Family::Empty,
        EmptyResponse,
        &[
            "{没有|未}{输出|返回|生成}{任何|}{内容|文本|结果}",
            "{返回|输出|生成}{结果|内容|文本}为空",
            "応答がありません*",
            "응답 {내용이|이} 없습니다",
            "{модель|сервер} не {вернул*|дал*|сгенерировал*} .. {ответ*|текст*}",
            "{modell hat} .. keine antwort",
            "{modèle|assistant} n'a {renvoyé|produit|retourné} aucun*",
            "{modelo} no {devolvió|generó|produjo} .. {contenido|respuesta|texto}",
            "modelo não {retornou|gerou|produziu} .. {conteúdo|resposta|texto}",
        ],
    ),
    text("core/languages-server", Family::Server, ServerError, &["服务器开小差", "系统开小差", "服务开小差"]),
    text("core/languages-session", Family::Session, SessionExpired, &["{会话|对话}已{结束|关闭|失效|过期}"])
        .none(&["登录"]),
    text(
        "core/languages-abort",
        Family::Machine,
        Aborted,
        &["пользователь {отменил|прервал|остановил}*", "用户{取消|中断|终止|停止}*"],
    ),
];
